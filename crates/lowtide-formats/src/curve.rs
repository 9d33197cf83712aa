//! [`memory_curve`]: bytes over steps as a small picture for a terminal.
//!
//! ~~~text
//! 48.00 MiB ┤    ▂█▂
//! 24.00 MiB ┤╌╌▆▆███╌╌╌╌ lower bound 30.00 MiB      each column: the maximum of its steps
//!       0 B ┤▂▂███████▂
//!            0       147
//! ~~~

use lowtide_core::Bytes;

/// How a curve is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurveStyle {
    /// Columns of the picture, without the axis.
    pub width: usize,
    /// Lines of the picture, without the line of steps; at least 3 are drawn.
    pub height: usize,
    /// A dashed line at this height.
    pub lower_bound: Option<Bytes>,
}

impl Default for CurveStyle {
    /// 60 columns and 8 lines, without a bound.
    fn default() -> Self {
        Self { width: 60, height: 8, lower_bound: None }
    }
}

/// Draws the bytes of each step. The scale ends at the peak, or at the bound if that is higher.
pub fn memory_curve(values: &[Bytes], style: &CurveStyle) -> String {
    if values.is_empty() {
        return "no steps\n".to_owned();
    }
    let columns = columns(values, style.width.max(1));
    let highest = values.iter().copied().chain(style.lower_bound).max();
    let scale = Scale { top: highest.unwrap_or_default(), lines: style.height.max(3) };
    let labels = [scale.top, Bytes(scale.top.0 / 2), Bytes::ZERO].map(|bytes| bytes.to_string());
    let margin = labels.iter().map(String::len).max().unwrap_or(0);
    let bound = style.lower_bound.map(|bound| (scale.line(bound), bound));
    let mut text = String::new();
    for line in (0..scale.lines).rev() {
        let label = scale.label(line).map_or("", |label| &labels[label]);
        let mark = bound.filter(|&(at, _)| at == line).map(|(_, bound)| bound);
        draw(&mut text, &format!("{label:>margin$} ┤"), mark, &|empty| {
            columns.iter().map(|&value| scale.cell(value, line).unwrap_or(empty)).collect()
        });
    }
    let last = (values.len() - 1).to_string();
    let steps = if values.len() == 1 { String::new() } else { last };
    let room = columns.len().saturating_sub(2);
    let line = format!("{:margin$}  0 {steps:>room$}", "");
    text.push_str(line.trim_end());
    text.push('\n');
    text
}

/// One line: the axis, the cells, and the bound where it lies here.
fn draw(text: &mut String, axis: &str, mark: Option<Bytes>, cells: &dyn Fn(char) -> String) {
    let line = match mark {
        Some(bound) => format!("{axis}{} lower bound {bound}", cells('╌')),
        None => format!("{axis}{}", cells(' ')),
    };
    text.push_str(line.trim_end());
    text.push('\n');
}

/// The maximum of the steps of each column; a step is spread over several if there are few.
fn columns(values: &[Bytes], width: usize) -> Vec<Bytes> {
    let start = |column: usize| {
        let step = column as u128 * values.len() as u128 / width as u128;
        usize::try_from(step).expect("a step is below the number of values")
    };
    let highest = |column: usize| {
        let end = start(column + 1).max(start(column) + 1);
        values[start(column)..end].iter().copied().max().unwrap_or_default()
    };
    (0..width).map(highest).collect()
}

struct Scale {
    top: Bytes,
    lines: usize,
}

impl Scale {
    const EIGHTHS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

    /// Eighths of a line that a value fills, rounded up, so that little is not nothing.
    fn eighths(&self, value: Bytes) -> usize {
        let all = self.lines as u128 * 8;
        let filled = (u128::from(value.0) * all).div_ceil(u128::from(self.top.0.max(1)));
        usize::try_from(filled).expect("a value is not above the top of its scale")
    }

    /// The line in which a value ends.
    fn line(&self, value: Bytes) -> usize {
        self.eighths(value).saturating_sub(1) / 8
    }

    /// What a value draws in a line, if anything.
    fn cell(&self, value: Bytes, line: usize) -> Option<char> {
        let above = self.eighths(value).checked_sub(line * 8 + 1)?;
        Some(Self::EIGHTHS[above.min(7)])
    }

    /// Which label stands at a line: the top and the half at their upper edges, or zero.
    fn label(&self, line: usize) -> Option<usize> {
        let lines = [self.lines - 1, (self.lines - 1) / 2, 0];
        lines.iter().position(|&at| at == line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw_curve(values: &[u64], width: usize, bound: Option<u64>) -> Vec<String> {
        let values: Vec<Bytes> = values.iter().copied().map(Bytes).collect();
        let style = CurveStyle { width, height: 3, lower_bound: bound.map(Bytes) };
        memory_curve(&values, &style).lines().map(str::to_owned).collect()
    }

    #[test]
    fn each_column_is_the_maximum_of_its_steps() {
        let wanted = ["24 B ┤  █", "12 B ┤ ██", " 0 B ┤▁██", "      0 5"];
        assert_eq!(draw_curve(&[1, 0, 16, 3, 24, 0], 3, None), wanted);
    }

    #[test]
    fn few_steps_are_stretched() {
        let wanted = ["8 B ┤  ▂▂", "4 B ┤▄▄██", "0 B ┤████", "     0  1"];
        let drawn = draw_curve(&[4, 6], 4, Some(8));
        assert_eq!(drawn[1..], wanted[1..]);
        assert_eq!(drawn[0], "8 B ┤╌╌▂▂ lower bound 8 B");
    }

    #[test]
    fn one_step_and_no_bytes_and_no_steps_are_drawn() {
        assert_eq!(draw_curve(&[0], 2, None), ["0 B ┤", "0 B ┤", "0 B ┤", "     0"]);
        assert_eq!(draw_curve(&[], 2, None), ["no steps"]);
    }

    #[test]
    fn the_largest_value_and_a_width_of_nothing_do_not_overflow() {
        assert_eq!(draw_curve(&[u64::MAX, 1], 0, Some(1)).len(), 4);
    }
}
