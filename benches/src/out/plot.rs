//! Draws the plots: a panel per cell, a bar per peer, the shortest on top. Ours has a colour of its own.
//!
//! A plot fills its background, because the colour of the reader's page is unknown.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, anyhow};
use plotters::{
    coord::Shift,
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};

use super::format::time;
use crate::{
    results::{CellResult, Row},
    what::peers::Role,
};

/// An area to draw in, and its colours.
struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
    theme: Theme,
}

const COLUMNS: usize = 2;
const PANEL_WIDTH: i32 = 540;
/// The height of a bar, with the gap to the next one.
const LINE: i32 = 20;
/// The room for the title and the floor above the bars.
const TOP: i32 = 44;
/// The gap below the bars.
const BOTTOM: i32 = 14;
const LEGEND: i32 = 36;
/// The place where the bars begin; the labels are to the left of it.
const LEFT: i32 = 165;
/// The room for the figures to the right of the longest bar.
const RIGHT: i32 = 140;
/// A bar is cut if it is this many times as long as the shortest. Otherwise short bars would vanish.
const LONGEST: f64 = 12.0;

const OURS: RGBColor = RGBColor(0x1b, 0x7f, 0x5c);
const GNU: RGBColor = RGBColor(0xb2, 0x53, 0x2e);
const OTHER: RGBColor = RGBColor(0x9a, 0xa5, 0xb1);

/// The colours that depend on the page around a plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Theme {
    /// The colour of texts and lines.
    ink: RGBColor,
    page: RGBColor,
}

impl Theme {
    /// Dark on white.
    pub(crate) const LIGHT: Self = Self {
        ink: RGBColor(0x22, 0x22, 0x22),
        page: WHITE,
    };
    /// Light on the background that code forges use in their dark mode.
    pub(crate) const DARK: Self = Self {
        ink: RGBColor(0xe6, 0xed, 0xf3),
        page: RGBColor(0x0d, 0x11, 0x17),
    };
}

/// The looks of a piece of text. The backend multiplies a font size by about 0.8 to get pixels.
#[derive(Clone, Copy)]
enum Style {
    Title,
    Label,
    Ours,
    Small,
}

/// The style of a text, and the side of its position from which it is drawn.
#[derive(Clone, Copy)]
struct Look {
    style: Style,
    side: HPos,
}

impl Style {
    fn at(self, side: HPos) -> Look {
        Look { style: self, side }
    }
}

/// Draws the cells that have figures; returns `false` if there are none.
pub(crate) fn draw(cells: &[&CellResult], theme: Theme, file: &Path) -> Result<bool> {
    let cells: Vec<_> = cells
        .iter()
        .copied()
        .filter(|cell| cell.fastest().is_some())
        .collect();
    if cells.is_empty() {
        return Ok(false);
    }
    let failed = |error: String| anyhow!("cannot draw {}: {error}", file.display());
    let heights: Vec<_> = cells.chunks(COLUMNS).map(height).collect();
    let height = LEGEND + heights.iter().sum::<i32>();
    let size = ((PANEL_WIDTH * COLUMNS as i32) as u32, height as u32);
    let mut svg = String::new();
    let canvas = Canvas {
        area: SVGBackend::with_string(&mut svg, size).into_drawing_area(),
        theme,
    };
    canvas
        .area
        .fill(&theme.page)
        .map_err(|error| failed(error.to_string()))?;
    let has_floor = cells.iter().any(|cell| cell.floor.is_some());
    canvas.legend(has_floor).map_err(failed)?;
    let mut top = LEGEND;
    for (row, height) in cells.chunks(COLUMNS).zip(heights) {
        for (column, cell) in row.iter().enumerate() {
            let left = column as i32 * PANEL_WIDTH;
            let size = (PANEL_WIDTH as u32, height as u32);
            let panel = Canvas {
                area: canvas.area.clone().shrink((left, top), size),
                theme,
            };
            panel.panel(cell).map_err(failed)?;
        }
        top += height;
    }
    canvas
        .area
        .present()
        .map_err(|error| failed(error.to_string()))?;
    drop(canvas);
    fs::write(file, compact(&svg, theme.ink))
        .with_context(|| format!("cannot write {}", file.display()))?;
    Ok(true)
}

/// Removes the attributes that the backend repeats with each element, about half of an SVG.
fn compact(svg: &str, ink: RGBColor) -> String {
    let fill = format!(" fill=\"#{:02X}{:02X}{:02X}\"", ink.0, ink.1, ink.2);
    let defaults = format!(" font-family=\"sans-serif\" font-size=\"12.1\"{fill} xmlns=");
    let repeated = [
        (" xmlns=", &*defaults),
        (" opacity=\"1\"", ""),
        (" stroke=\"none\"", ""),
        (" text-anchor=\"start\"", ""),
        (" font-size=\"12.096774193548388\"", ""),
        (" font-size=\"14.516129032258064\"", " font-size=\"14.5\""),
        (" font-size=\"10.483870967741936\"", " font-size=\"10.5\""),
    ];
    let mut text = svg.replace(" font-family=\"sans-serif\"", "");
    for (from, to) in repeated {
        text = text.replace(from, to);
    }
    let lines = text.lines().map(|line| match line.strip_prefix("<text") {
        // The backend puts the words on the next line, and the end tag on the one after.
        Some(line) => format!("<text{}", line.replace(&fill, "")),
        None if line.starts_with('<') && line != "</text>" => format!("{line}\n"),
        None if line == "</text>" => "</text>\n".to_owned(),
        None => line.to_owned(),
    });
    lines.collect()
}

/// Returns the height of panels beside each other.
fn height(cells: &[&CellResult]) -> i32 {
    let most = cells.iter().map(|cell| cell.ranking().len()).max();
    TOP + LINE * most.unwrap_or(0) as i32 + BOTTOM
}

/// Returns the approximate width of a label.
fn width(words: &str) -> i32 {
    words.len() as i32 * 7
}

/// The scale of the bars of a panel.
struct Scale {
    fastest: f64,
    pixels_per_second: f64,
    /// The place of the floor.
    floor: Option<i32>,
}

impl Scale {
    fn of(cell: &CellResult) -> Self {
        let times: Vec<_> = cell.ranking().iter().map(|row| row.times.seconds).collect();
        let (fastest, longest) = (times[0], times[times.len() - 1]);
        let floor = cell.floor_seconds();
        let shown = longest.min(fastest * LONGEST).max(floor.unwrap_or(0.0));
        let pixels_per_second = f64::from(PANEL_WIDTH - LEFT - RIGHT) / shown;
        Self {
            fastest,
            pixels_per_second,
            floor: floor.map(|seconds| LEFT + (seconds * pixels_per_second) as i32),
        }
    }

    /// Returns where a bar ends, and whether it is cut.
    fn end(&self, seconds: f64) -> (i32, bool) {
        let end = LEFT + ((seconds * self.pixels_per_second) as i32).max(1);
        (end.min(PANEL_WIDTH - RIGHT), end > PANEL_WIDTH - RIGHT + 1)
    }
}

impl Canvas<'_> {
    /// Explains the colours, and the line of the floor if there is one.
    fn legend(&self, has_floor: bool) -> Result<(), String> {
        let middle = LEGEND / 2;
        let mut left = 24;
        for (colour, words) in [(OURS, "this repository"), (GNU, "GNU"), (OTHER, "others")] {
            self.rectangle((left, middle - 6), (left + 18, middle + 6), colour)?;
            self.text(words, (left + 24, middle), Style::Label.at(HPos::Left))?;
            left += 60 + width(words);
        }
        let mut words = "(1.00x): the time of the fastest".to_owned();
        if has_floor {
            self.line((left, middle - 9), (left, middle + 9))?;
            words.insert_str(0, "floor: the necessary system calls alone; ");
        }
        self.text(&words, (left + 8, middle), Style::Label.at(HPos::Left))
    }

    fn panel(&self, cell: &CellResult) -> Result<(), String> {
        let rows = cell.ranking();
        let scale = Scale::of(cell);
        self.text(&cell.title, (LEFT, 14), Style::Title.at(HPos::Left))?;
        for (i, row) in rows.iter().enumerate() {
            self.bar(row, TOP + LINE * i as i32, &scale)?;
        }
        let Some(x) = scale.floor else {
            return Ok(());
        };
        self.line((x, TOP - 4), (x, TOP + LINE * rows.len() as i32))?;
        self.text("floor", (x, TOP - 10), Style::Small.at(HPos::Center))
    }

    fn bar(&self, row: &Row, y: i32, scale: &Scale) -> Result<(), String> {
        let (colour, style) = match row.role {
            Role::Ours => (OURS, Style::Ours),
            Role::Reference => (GNU, Style::Label),
            Role::Fixed | Role::Other => (OTHER, Style::Label),
        };
        let seconds = row.times.seconds;
        let (end, cut) = scale.end(seconds);
        self.rectangle((LEFT, y + 2), (end, y + LINE - 3), colour)?;
        if cut {
            let gap = [(-18, 1), (-12, 1), (-18, 0), (-24, 0)];
            let gap = gap.map(|(x, top)| (end + x, if top == 1 { y } else { y + LINE }));
            self.area
                .draw(&Polygon::new(gap.to_vec(), self.theme.page.filled()))
                .map_err(|error| error.to_string())?;
        }
        let middle = y + LINE / 2;
        self.text(&row.peer, (LEFT - 7, middle), style.at(HPos::Right))?;
        let words = format!("{} ({:.2}x)", time(seconds), seconds / scale.fastest);
        // The figures move to the right of the floor's line, so that it does not run through them.
        let left = end + 6;
        let left = match scale.floor {
            Some(floor) if (left - 3..left + width(&words)).contains(&floor) => floor + 6,
            _ => left,
        };
        self.text(&words, (left, middle), style.at(HPos::Left))
    }

    fn line(&self, from: (i32, i32), to: (i32, i32)) -> Result<(), String> {
        let style = self.theme.ink.mix(0.7).stroke_width(1);
        self.area
            .draw(&PathElement::new(vec![from, to], style))
            .map_err(|error| error.to_string())
    }

    fn rectangle(&self, from: (i32, i32), to: (i32, i32), colour: RGBColor) -> Result<(), String> {
        self.area
            .draw(&Rectangle::new([from, to], colour.filled()))
            .map_err(|error| error.to_string())
    }

    fn text(&self, words: &str, place: (i32, i32), look: Look) -> Result<(), String> {
        let (size, weight) = match look.style {
            Style::Title => (18, FontStyle::Bold),
            Style::Label => (15, FontStyle::Normal),
            Style::Ours => (15, FontStyle::Bold),
            Style::Small => (13, FontStyle::Normal),
        };
        let font = ("sans-serif", size).into_font().style(weight);
        let style = font
            .color(&self.theme.ink)
            .pos(Pos::new(look.side, VPos::Center));
        self.area
            .draw(&Text::new(words.to_owned(), place, style))
            .map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::row;

    #[test]
    fn a_plot_names_the_peers_and_nothing_is_drawn_of_nothing() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("plot.svg");
        let cell = CellResult {
            rows: vec![row("rmz", &[0.1]), row("rm -r", &[0.25])],
            ..CellResult::default()
        };
        assert!(draw(&[&cell], Theme::LIGHT, &file).unwrap());
        let svg = std::fs::read_to_string(&file).unwrap();
        assert!(
            svg.contains("rmz") && svg.contains("250 ms (2.50x)"),
            "{svg}"
        );
        assert!(!draw(&[&CellResult::default()], Theme::LIGHT, &file).unwrap());
    }

    #[test]
    fn a_bar_far_longer_than_the_shortest_is_cut() {
        let cell = CellResult {
            rows: vec![row("rmz", &[0.1]), row("rm -r", &[0.6]), row("far", &[9.0])],
            ..CellResult::default()
        };
        let scale = Scale::of(&cell);
        let longest = PANEL_WIDTH - RIGHT;
        assert_eq!(scale.end(9.0), (longest, true));
        let (end, cut) = scale.end(0.6);
        let half = LEFT + (longest - LEFT) / 2;
        assert!(!cut && (end - half).abs() <= 1, "{end}");
    }
}
