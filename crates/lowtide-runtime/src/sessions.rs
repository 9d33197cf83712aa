//! [`Sessions`]: calls from several threads, one after the other or each in an arena of its own.
//!
//! ~~~text
//! most 1:   thread a ── run ──┐                 they take turns; one arena
//!           thread b          └── run ──
//! most 2:   thread a ── run ──                  each in a session of its own, made when it is needed first; a third
//!           thread b ── run ──                  thread waits until one is free
//! ~~~

use crate::{Session, SessionError};
use parking_lot::{Condvar, Mutex};
use std::num::NonZeroUsize;

/// Makes a session; each time of the same program and plan.
type Make = Box<dyn Fn() -> Result<Session, SessionError> + Send + Sync>;

/// Sessions of one program and plan, for calls from several threads.
pub struct Sessions {
    make: Make,
    most: usize,
    state: Mutex<State>,
    is_free: Condvar,
}

#[derive(Debug, Default)]
struct State {
    idle: Vec<Session>,
    /// Those that are used, too.
    made: usize,
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { most, state, .. } = self;
        f.debug_struct("Sessions").field("most", most).field("state", state).finish_non_exhaustive()
    }
}

impl Sessions {
    /// At most `most` sessions, each with an arena and threads of its own; with one, calls take turns.
    pub fn new(
        most: NonZeroUsize,
        make: impl Fn() -> Result<Session, SessionError> + Send + Sync + 'static,
    ) -> Self {
        let state = Mutex::new(State::default());
        Self { make: Box::new(make), most: most.get(), state, is_free: Condvar::new() }
    }

    /// Does `work` with a session that nobody else uses meanwhile. Waits for one if as many as there may be are used; an
    /// error if one is missing and cannot be made, and none is there to wait for.
    pub fn with<R>(&self, work: impl FnOnce(&mut Session) -> R) -> Result<R, SessionError> {
        let mut lent = Lent { sessions: self, session: Some(self.take()?) };
        Ok(work(lent.session.as_mut().expect("it is given back when it is dropped")))
    }

    /// How many sessions there are.
    pub fn made(&self) -> usize {
        self.state.lock().made
    }

    fn take(&self) -> Result<Session, SessionError> {
        let mut state = self.state.lock();
        loop {
            if let Some(session) = state.idle.pop() {
                return Ok(session);
            }
            if state.made < self.most {
                break;
            }
            self.is_free.wait(&mut state);
        }
        state.made += 1;
        drop(state);
        // Others may go on meanwhile: it can take long.
        (self.make)().inspect_err(|_| {
            self.state.lock().made -= 1;
            self.is_free.notify_one();
        })
    }
}

/// A session that goes back to the others, also when the work panics.
struct Lent<'a> {
    sessions: &'a Sessions,
    session: Option<Session>,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.sessions.state.lock().idle.extend(self.session.take());
        self.sessions.is_free.notify_one();
    }
}
