//! Draws the plot: a panel for each cell, with a bar for each command. The first one is ours, and the second GNU's.

use std::fmt::Write as _;

use super::format::{figure, time};

/// One cell of the plot.
pub(super) struct Panel {
    pub(super) title: String,
    /// The label and the seconds of each command.
    pub(super) bars: Vec<(String, f64)>,
}

const COLUMNS: usize = 2;
const PANEL_WIDTH: usize = 480;
/// The height of a bar, with the gap to the next one.
const LINE: usize = 20;
/// The room for the title above the bars, and for the gap below them.
const AROUND: usize = 50;
/// The place where the bars begin; the labels are to the left of it.
const LEFT: usize = 140;
/// The length of the longest bar. The figures are to the right of it.
const LONGEST: f64 = 220.0;

/// The colours. The background is filled, because the colour of the reader's page is unknown.
const STYLE: &str = "text{font:12px sans-serif;fill:#222}.title{font-weight:bold}\
    .label{text-anchor:end}.bar0{fill:#1b7f5c}.bar1{fill:#b2532e}rect{fill:#9aa5b1}.page{fill:#fff}\
    @media(prefers-color-scheme:dark){text{fill:#e6edf3}.page{fill:#0d1117}}";

/// Returns the plot as SVG.
pub(super) fn draw(panels: &[Panel]) -> String {
    let mut top = 0;
    let mut body = String::new();
    for row in panels.chunks(COLUMNS) {
        for (column, panel) in row.iter().enumerate() {
            let left = column * PANEL_WIDTH;
            let _ = writeln!(
                body,
                "<g transform=\"translate({left},{top})\">{}</g>",
                draw_panel(panel)
            );
        }
        let most = row.iter().map(|panel| panel.bars.len()).max();
        top += AROUND + LINE * most.unwrap_or(0);
    }
    let width = COLUMNS * PANEL_WIDTH;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {top}\">\n<style>{STYLE}</style>\n<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n{body}</svg>\n"
    )
}

fn draw_panel(panel: &Panel) -> String {
    let seconds = || panel.bars.iter().map(|(_, seconds)| *seconds);
    let longest = seconds().fold(0.0, f64::max);
    let fastest = seconds().fold(f64::INFINITY, f64::min);
    let mut text = format!(
        "<text class=\"title\" x=\"{LEFT}\" y=\"18\">{}</text>",
        panel.title
    );
    for (i, (label, seconds)) in panel.bars.iter().enumerate() {
        let y = 28 + LINE * i;
        let middle = y + 12;
        let width = (seconds / longest * LONGEST).max(1.0) as usize;
        let right = LEFT + width + 6;
        let label_end = LEFT - 7;
        let (time, multiple) = (time(*seconds), figure(seconds / fastest));
        let _ = write!(
            text,
            "\n<text class=\"label\" x=\"{label_end}\" y=\"{middle}\">{label}</text>\
             <rect class=\"bar{i}\" x=\"{LEFT}\" y=\"{y}\" width=\"{width}\" height=\"15\"/>\
             <text x=\"{right}\" y=\"{middle}\">{time} ({multiple}x)</text>"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_has_a_bar_for_each_command_in_proportion_to_its_time() {
        let bar = |label: &str, seconds| (label.to_owned(), seconds);
        let svg = draw(&[Panel {
            title: "remove".to_owned(),
            bars: vec![bar("rmz", 0.1), bar("rm -r", 0.25)],
        }]);
        for part in ["rmz", "250 ms (2.50x)", "width=\"220\"", "width=\"88\""] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
    }
}
