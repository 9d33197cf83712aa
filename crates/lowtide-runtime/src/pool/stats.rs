//! [`PoolStats`]: what a pool holds and what it loses, as figures and as text for Prometheus.
//!
//! ~~~text
//! held ───────────────────────────────────────────────── pages of all segments that are resident
//! used ───────────────────────────┐ at hand ─┐ free ────
//! asked ──────────────┐ internal ─┘          └ external ─ waste
//! ~~~

use super::Pool;
use lowtide_core::Bytes;
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};

/// What one worker notes. Each figure is written by one thread at a time, so that writing costs no exchange; what one worker
/// takes and another gives back makes single figures wrap around, not their sums.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Book {
    used: AtomicU64,
    asked: AtomicU64,
    allocs: AtomicU64,
    frees: AtomicU64,
}

fn add(figure: &AtomicU64, more: u64) {
    figure.store(figure.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

impl Book {
    /// A block is given out.
    #[inline]
    pub(super) fn open(&self, bytes: u64, asked: u64) {
        add(&self.used, bytes);
        add(&self.asked, asked);
        add(&self.allocs, 1);
    }

    /// A block comes back.
    #[inline]
    pub(super) fn close(&self, bytes: u64, asked: u64) {
        add(&self.used, bytes.wrapping_neg());
        add(&self.asked, asked.wrapping_neg());
        add(&self.frees, 1);
    }
}

/// Blocks of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassStats {
    /// Bytes of each.
    pub size: Bytes,
    /// Taken from the lists: in use, or at hand.
    pub taken: u64,
    /// Of these cut from spans of a larger class, and not yet given back to the lists.
    pub borrowed: u64,
    /// Free spans in the list, each at least as large.
    pub free: u64,
}

/// What a pool holds. While other threads use it the figures are of slightly different moments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolStats {
    /// Address space of all segments.
    pub mapped: Bytes,
    /// Bytes of pages that were in a block and have not been given back since: what is memory.
    pub held: Bytes,
    /// The most that was held.
    pub peak_held: Bytes,
    /// Bytes of blocks that were given out and not given back.
    pub used: Bytes,
    /// The most that was taken from the lists, in use and at hand.
    pub peak_taken: Bytes,
    /// Bytes that were asked for in these blocks.
    pub asked: Bytes,
    /// Bytes of free blocks that workers and homes have at hand.
    pub at_hand: Bytes,
    /// The largest free span.
    pub largest_hole: Bytes,
    /// Free bytes in other holes between blocks.
    pub scattered: Bytes,
    /// What the segments may take at most.
    pub limit: Bytes,
    /// Segments.
    pub segments: u64,
    /// Blocks given out so far, and of these without the lock.
    pub allocs: u64,
    /// Blocks given out so far without the lock.
    pub from_hand: u64,
    /// Blocks given back so far.
    pub frees: u64,
    /// Segments mapped so far.
    pub grown: u64,
    /// Bytes given back to the system so far as pages of segments that stay.
    pub discarded: Bytes,
    /// Segments given back to the system so far.
    pub released: u64,
    /// How often blocks were moved together.
    pub compactions: u64,
    /// Bytes that were moved.
    pub moved: Bytes,
    /// Classes that have any block.
    pub classes: Vec<ClassStats>,
}

/// One figure of a class.
type ClassFigure = fn(&ClassStats) -> u64;

impl PoolStats {
    /// Bytes of blocks beyond what was asked for.
    pub fn internal_waste(&self) -> Bytes {
        self.used.saturating_sub(self.asked)
    }

    /// Bytes of segments that no block in use takes.
    pub fn external_waste(&self) -> Bytes {
        self.held.saturating_sub(self.used)
    }

    /// Bytes of blocks that are borrowed from larger classes.
    pub fn borrowed(&self) -> Bytes {
        self.classes.iter().map(|class| Bytes(class.size.0 * class.borrowed)).sum()
    }

    /// All figures in the text format of Prometheus, labelled with the name of the pool.
    pub fn to_prometheus(&self, pool: &str) -> String {
        let mut text = String::new();
        self.write(&mut text, &escaped(pool)).expect("strings take any text");
        text
    }

    fn write(&self, text: &mut String, pool: &str) -> fmt::Result {
        let bytes = [
            ("mapped", "of address space of all segments", self.mapped),
            ("held", "of segments that are resident", self.held),
            ("peak_held", "of segments resident at most so far", self.peak_held),
            ("used", "of blocks in use", self.used),
            ("peak_taken", "of blocks in use and at hand at most so far", self.peak_taken),
            ("asked", "asked for in blocks in use", self.asked),
            ("at_hand", "of free blocks that workers have at hand", self.at_hand),
            ("borrowed", "of blocks cut from spans of a larger class", self.borrowed()),
            ("internal_waste", "of blocks in use beyond what was asked for", self.internal_waste()),
            ("external_waste", "of segments that no block in use takes", self.external_waste()),
            ("largest_hole", "of the largest free span", self.largest_hole),
            ("scattered", "free in other holes between blocks", self.scattered),
            ("limit", "that segments may take at most", self.limit),
        ];
        for (name, what, Bytes(value)) in bytes {
            gauge(text, &format!("{name}_bytes"), "gauge", &format!("Bytes {what}"))?;
            writeln!(text, "lowtide_pool_{name}_bytes{{pool=\"{pool}\"}} {value}")?;
        }
        let counters = [
            ("allocs", "Blocks given out", self.allocs),
            ("allocs_at_hand", "Blocks given out without the lock", self.from_hand),
            ("frees", "Blocks given back", self.frees),
            ("segments_mapped", "Segments mapped", self.grown),
            ("segments_released", "Segments given back to the system", self.released),
            ("discarded_bytes", "Bytes given back to the system as pages", self.discarded.0),
            ("compactions", "How often blocks were moved together", self.compactions),
            ("moved_bytes", "Bytes moved by that", self.moved.0),
        ];
        for (name, what, value) in counters {
            gauge(text, &format!("{name}_total"), "counter", what)?;
            writeln!(text, "lowtide_pool_{name}_total{{pool=\"{pool}\"}} {value}")?;
        }
        self.write_classes(text, pool)
    }

    fn write_classes(&self, text: &mut String, pool: &str) -> fmt::Result {
        let figures: [(&str, &str, ClassFigure); 3] = [
            ("class_taken", "Blocks of a class in use or at hand", |class| class.taken),
            ("class_borrowed", "Blocks of a class cut from larger spans", |class| class.borrowed),
            ("class_free", "Free spans in the list of a class", |class| class.free),
        ];
        for (name, what, of) in figures {
            gauge(text, name, "gauge", what)?;
            for class in &self.classes {
                let (size, value) = (class.size.0, of(class));
                writeln!(text, "lowtide_pool_{name}{{pool=\"{pool}\",size=\"{size}\"}} {value}")?;
            }
        }
        Ok(())
    }
}

fn gauge(text: &mut String, name: &str, kind: &str, what: &str) -> fmt::Result {
    writeln!(text, "# HELP lowtide_pool_{name} {what}.")?;
    writeln!(text, "# TYPE lowtide_pool_{name} {kind}")
}

/// A label's value: backslashes, quotes and ends of lines have to be escaped.
fn escaped(label: &str) -> String {
    label.replace('\\', r"\\").replace('"', "\\\"").replace('\n', "\\n")
}

impl Pool {
    /// What it holds now.
    pub fn stats(&self) -> PoolStats {
        let sum = |figure: fn(&Book) -> &AtomicU64| {
            let figures = self.books.iter().map(|book| figure(book).load(Ordering::Relaxed));
            figures.fold(0, u64::wrapping_add)
        };
        let segments = self.lock();
        let spans = &segments.spans;
        let allocs = sum(|book| &book.allocs);
        let used = Bytes(sum(|book| &book.used));
        let classes = spans.counts().iter().enumerate().map(|(class, count)| ClassStats {
            size: spans.classes().size(class),
            taken: count.held,
            borrowed: count.lent,
            free: count.free,
        });
        PoolStats {
            mapped: Bytes(spans.mapped),
            held: Bytes(spans.total),
            peak_held: Bytes(segments.peak),
            used,
            peak_taken: Bytes(spans.peak),
            asked: Bytes(sum(|book| &book.asked)),
            at_hand: Bytes(spans.held).saturating_sub(used),
            largest_hole: spans.largest_hole(),
            scattered: spans.scattered(),
            limit: self.config.limit,
            segments: segments.grown - segments.released,
            allocs,
            from_hand: allocs.saturating_sub(segments.taken),
            frees: sum(|book| &book.frees),
            grown: segments.grown,
            discarded: Bytes(segments.discarded),
            released: segments.released,
            compactions: segments.compactions,
            moved: Bytes(segments.moved),
            classes: classes.filter(|class| class.taken + class.free > 0).collect(),
        }
    }
}
