//! What the doctor found, for people.

use lowtide::core::Step;
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
            let then = if finding.difference.is_some() {
                "a tensor is wrong"
            } else {
                "one cannot be made"
            };
            line!(
                text,
                "{model}, {plan}: {runs} of {steps} runs agree with safe mode, then {then}\n"
            );
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
    let verb = if finding.difference.is_some() { "is wrong" } else { "lies wrong" };
    line!(text, "`{tensor}` {verb} {place}");
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
        let name = stay.as_ref().map_or(&finding.tensor, |stay| &stay.name);
        format!("`{name}`")
    };
    let (victim, culprit) = (named(&finding.victim), named(&finding.culprit));
    match &finding.cause {
        Cause::FreedEarly { free, short } => freed_early(finding, *free, *short),
        Cause::AllocatedLate { held, late } => allocated_late(finding, *held, *late),
        Cause::InPlace => format!(
            "{} writes {culprit} over its input {victim}, which is needed {}",
            writer(finding),
            until(finding)
        ),
        Cause::Overlap { start, end } => format!(
            "{victim} and {culprit} are held at the same time, and both have bytes {} to {}; {} has them last",
            start.0,
            end.0,
            writer(finding)
        ),
        Cause::OneRun { operands: [one, other] } => format!(
            "{one}, {victim}, and {other}, {culprit}, lie on the same bytes, which this operator does not allow"
        ),
        Cause::Bound { by } => {
            format!(
                "{} is bound to the memory of {culprit} instead of that of {victim}",
                run_of(by)
            )
        }
        Cause::Order { writer } => {
            format!("{} writes {victim}, and this reader does not wait for it", run_of(writer))
        }
        Cause::Changed { by } => {
            format!(
                "{} changes the memory of {victim} and does not wait for this reader",
                run_of(by)
            )
        }
        Cause::Kernel { message } => {
            let seen = finding.seen.as_ref().map_or("the end".to_owned(), run_of);
            format!("{seen}: {message}")
        }
        _ => finding.cause.name().to_owned(),
    }
}

fn victim(finding: &Finding) -> &str {
    finding.victim.as_ref().map_or(&finding.tensor, |stay| &stay.name)
}

fn writer(finding: &Finding) -> String {
    finding.writer.as_ref().map_or("the culprit".to_owned(), run_of)
}

fn freed_early(finding: &Finding, free: Step, short: u32) -> String {
    let after = match free.0.checked_sub(1) {
        None => "before the first step".to_owned(),
        Some(step) => format!("after step {step}"),
    };
    let taken = match &finding.culprit {
        None => String::new(),
        Some(stay) => format!("; `{}` has its bytes then", stay.name),
    };
    let (victim, until, short) = (victim(finding), until(finding), counted(short));
    format!("`{victim}` is freed {after} and needed {until}: {short} short{taken}")
}

fn allocated_late(finding: &Finding, held: Option<Step>, late: u32) -> String {
    let victim = victim(finding);
    let Some(held) = held else { return format!("`{victim}` is never allocated") };
    let needed = finding.victim.as_ref().and_then(|stay| stay.needed);
    let from = needed.map_or(0, |needed| needed.start.0);
    let late = counted(late);
    format!("`{victim}` is held from step {held} on and written in step {from}: {late} late")
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
