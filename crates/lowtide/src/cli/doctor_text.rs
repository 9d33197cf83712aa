//! What the doctor found, for people.

use lowtide::formats::{DoctorSummary, FindingRow, StayRow, UseRow};
use lowtide::runtime::{Cause, Finding, Stay, Use};
use std::fmt::Write;

/// Faults of the checker, readers and writers that are listed before the rest is counted.
const SHOWN: usize = 8;

/// Appends a line; writing to a string cannot fail.
macro_rules! line {
    ($text:expr, $($arg:tt)*) => {
        let _ = writeln!($text, $($arg)*);
    };
}

/// Whether all agrees; if not, what differs first, the pair to blame and why; what the checker finds.
pub(super) fn text(summary: &DoctorSummary) -> String {
    let mut text = String::new();
    let DoctorSummary { model, steps, runs, compared, finding, .. } = summary;
    let plan = summary.plan.as_deref().unwrap_or("a plan made now");
    match finding {
        None => {
            line!(
                text,
                "{model}, {plan}: all {compared} operands and outputs of {runs} runs agree with safe mode"
            );
        }
        Some(finding) => {
            line!(
                text,
                "{model}, {plan}: {runs} of {steps} runs agree with safe mode, then a tensor is wrong"
            );
            line!(text, "");
            what(&mut text, finding);
        }
    }
    faults(&mut text, &summary.faults);
    text
}

fn what(text: &mut String, finding: &FindingRow) {
    let FindingRow { tensor, operand, .. } = finding;
    let place = finding.seen.as_ref().map_or("as an output, in the end".to_owned(), |seen| {
        format!("as {operand} of {}", run(seen))
    });
    line!(text, "`{tensor}` is wrong {place}");
    if let Some(row) = &finding.difference {
        let address = row
            .address
            .map_or_else(String::new, |address| format!(", byte {address} of the arena,"));
        let (element, found, wanted) = (row.element, &row.found, &row.wanted);
        line!(
            text,
            "element {element}{address} is {found}, wanted {wanted}; {} bytes differ",
            row.bytes
        );
    }
    line!(text, "");
    if let Some(victim) = &finding.victim {
        stay(text, "victim", victim);
    }
    if let Some(culprit) = &finding.culprit {
        stay(text, "culprit", culprit);
    }
    line!(text, "  {:<8} {}", "why", finding.why);
}

fn stay(text: &mut String, role: &str, stay: &StayRow) {
    let StayRow { residence, name, buffer, start, end, .. } = stay;
    line!(
        text,
        "  {role:<8} `{name}`: residence {residence} of buffer {buffer}, bytes {start} to {end}"
    );
    let held = stay.held.map_or("never held".to_owned(), |span| format!("held {}", steps(span)));
    let needed = stay.needed.map_or_else(String::new, |span| format!(", needed {}", steps(span)));
    let kept = if stay.is_output { " and as an output" } else { "" };
    line!(text, "  {:<8} {held}{needed}{kept}", "");
    for (verb, uses) in [("written", &stay.writers), ("read", &stay.readers)] {
        for row in uses.iter().take(SHOWN) {
            line!(text, "  {:<8} {verb} by {}", "", run(row));
        }
        if uses.len() > SHOWN {
            line!(text, "  {:<8} and {} more", "", uses.len() - SHOWN);
        }
    }
}

fn steps([start, end]: [u32; 2]) -> String {
    match end.checked_sub(start) {
        None | Some(0) => format!("in no step from {start} on"),
        Some(1) => format!("in step {start}"),
        Some(_) => format!("in steps {start} to {}", end - 1),
    }
}

fn run(row: &UseRow) -> String {
    run_text(&row.op, &row.kind, row.step)
}

fn run_of(row: &Use) -> String {
    run_text(&row.op, &row.kind, row.step.map(|step| step.0))
}

fn run_text(op: &str, kind: &str, step: Option<u32>) -> String {
    let step = step.map_or("never".to_owned(), |step| format!("in step {step}"));
    format!("`{op}` ({kind}) {step}")
}

fn faults(text: &mut String, faults: &[String]) {
    match faults.len() {
        0 => {
            line!(text, "the checker finds no fault");
            return;
        }
        1 => {
            line!(text, "\nthe checker finds a fault:");
        }
        count => {
            line!(text, "\nthe checker finds {count} faults:");
        }
    }
    for fault in faults.iter().take(SHOWN) {
        line!(text, "  {fault}");
    }
    if faults.len() > SHOWN {
        line!(text, "  and {} more", faults.len() - SHOWN);
    }
}

/// The cause in a sentence.
pub(super) fn why(finding: &Finding) -> String {
    let named = |stay: &Option<Stay>| {
        stay.as_ref()
            .map_or_else(|| format!("`{}`", finding.tensor), |stay| format!("`{}`", stay.name))
    };
    let (victim, culprit) = (named(&finding.victim), named(&finding.culprit));
    let writer = finding.writer.as_ref().map_or("another".to_owned(), run_of);
    match &finding.cause {
        Cause::FreedEarly { free, short } => {
            let taken = if finding.culprit.is_some() {
                format!("; {culprit} has its bytes then")
            } else {
                String::new()
            };
            let after = free
                .0
                .checked_sub(1)
                .map_or("before the first step".to_owned(), |step| format!("after step {step}"));
            format!(
                "{victim} is freed {after} and needed {}: {} short{taken}",
                until(finding),
                counted(*short)
            )
        }
        Cause::AllocatedLate { held: None, .. } => format!("{victim} is never allocated"),
        Cause::AllocatedLate { held: Some(held), late } => {
            let needed = finding.victim.as_ref().and_then(|stay| stay.needed);
            let from = needed.map_or(0, |needed| needed.start.0);
            format!(
                "{victim} is allocated for step {held} on and written in step {from}: {} late",
                counted(*late)
            )
        }
        Cause::InPlace => {
            format!(
                "{writer} writes {culprit} over its input {victim}, which is needed {}",
                until(finding)
            )
        }
        Cause::Overlap { start, end } => format!(
            "{victim} and {culprit} are held at the same time, and both have bytes {} to {}; {} wrote there last",
            start.0, end.0, writer
        ),
        Cause::OneRun { operands: [one, other] } => {
            format!(
                "{one} and {other} of this operator lie on the same bytes, in a way that it does not allow"
            )
        }
        Cause::Bound { by } => {
            format!("{} is bound to the memory of {culprit} where {victim} has its own", run_of(by))
        }
        Cause::Order { writer } => {
            format!("{} writes {victim}, and this reader does not wait for it", run_of(writer))
        }
        Cause::Changed { by } => {
            format!("{} changes the memory of {victim} without waiting for this reader", run_of(by))
        }
        Cause::Kernel { message } => {
            let seen = finding.seen.as_ref().map_or("nobody runs".to_owned(), run_of);
            format!("{seen}: {message}")
        }
        _ => finding.cause.name().to_owned(),
    }
}

/// Up to when the victim is needed.
fn until(finding: &Finding) -> String {
    let Some(stay) = &finding.victim else { return "later".to_owned() };
    if stay.is_output {
        return "in the end".to_owned();
    }
    let last = stay.needed.map_or(0, |needed| needed.end.0.saturating_sub(1));
    format!("up to step {last}")
}

fn counted(steps: u32) -> String {
    if steps == 1 { "one step".to_owned() } else { format!("{steps} steps") }
}
