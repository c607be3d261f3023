//! The plots: a panel per cell, a bar per peer, the shortest on top. Ours has a colour of its own.

use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::{
    coord::Shift,
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};

use crate::{
    report::time,
    results::{CellResult, Row},
};

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

const COLUMNS: usize = 2;
const PANEL_WIDTH: u32 = 520;
const LINE: i32 = 18;
const TOP: i32 = 34;
/// Where the bars begin: the labels are to the left.
const LEFT: i32 = 150;
/// What the figures behind the longest bar need.
const RIGHT: i32 = 130;

const OURS: RGBColor = RGBColor(0x1b, 0x7f, 0x5c);
const GNU: RGBColor = RGBColor(0xb2, 0x53, 0x2e);
const OTHER: RGBColor = RGBColor(0x9a, 0xa5, 0xb1);
const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);

/// Draws the cells that have figures; `false` if there are none.
pub(crate) fn draw(cells: &[&CellResult], file: &Path) -> Result<bool> {
    let cells: Vec<_> = cells
        .iter()
        .filter(|cell| cell.fastest().is_some())
        .collect();
    if cells.is_empty() {
        return Ok(false);
    }
    let most = cells
        .iter()
        .map(|cell| cell.ranking().len())
        .max()
        .unwrap_or(0);
    let height = TOP as u32 + (most as u32 + 1) * LINE as u32;
    let rows = cells.len().div_ceil(COLUMNS);
    let root = SVGBackend::new(file, (PANEL_WIDTH * COLUMNS as u32, height * rows as u32))
        .into_drawing_area();
    let failed = |error| anyhow!("cannot draw {}: {error}", file.display());
    root.fill(&WHITE)
        .map_err(|error| failed(error.to_string()))?;
    for (area, cell) in root.split_evenly((rows, COLUMNS)).iter().zip(cells) {
        panel(area, cell).map_err(failed)?;
    }
    root.present().map_err(|error| failed(error.to_string()))?;
    Ok(true)
}

fn panel(area: &Area<'_>, cell: &CellResult) -> Result<(), String> {
    let rows = cell.ranking();
    let longest = rows
        .iter()
        .map(|row| row.median_seconds())
        .fold(0.0, f64::max);
    let scale = f64::from(PANEL_WIDTH as i32 - LEFT - RIGHT) / longest;
    text(area, &cell.title, (LEFT, 14), 15, HPos::Left)?;
    for (i, row) in rows.iter().enumerate() {
        bar(area, cell, row, (TOP + LINE * i as i32, scale))?;
    }
    let Some(floor) = cell.floor_seconds() else {
        return Ok(());
    };
    let x = LEFT + (floor * scale) as i32;
    let ends = vec![(x, TOP - 4), (x, TOP + LINE * rows.len() as i32)];
    area.draw(&PathElement::new(ends, INK.mix(0.7).stroke_width(1)))
        .map_err(|error| error.to_string())?;
    text(area, "floor", (x, TOP - 9), 10, HPos::Center)
}

fn bar(
    area: &Area<'_>,
    cell: &CellResult,
    row: &Row,
    (y, scale): (i32, f64),
) -> Result<(), String> {
    let colour = if row.ours {
        OURS
    } else if row.reference {
        GNU
    } else {
        OTHER
    };
    let seconds = row.median_seconds();
    let end = LEFT + ((seconds * scale) as i32).max(1);
    let rectangle = Rectangle::new([(LEFT, y + 2), (end, y + LINE - 3)], colour.filled());
    area.draw(&rectangle).map_err(|error| error.to_string())?;
    let middle = y + LINE / 2;
    text(area, &row.peer, (LEFT - 6, middle), 12, HPos::Right)?;
    let ratio = cell
        .fastest()
        .map_or(1.0, |best| seconds / best.median_seconds());
    text(
        area,
        &format!("{} ({ratio:.2}x)", time(seconds)),
        (end + 5, middle),
        12,
        HPos::Left,
    )
}

fn text(
    area: &Area<'_>,
    words: &str,
    place: (i32, i32),
    size: i32,
    side: HPos,
) -> Result<(), String> {
    let style = ("sans-serif", size)
        .into_font()
        .color(&INK)
        .pos(Pos::new(side, VPos::Center));
    area.draw(&Text::new(words.to_owned(), place, style))
        .map_err(|error| error.to_string())
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
        assert!(draw(&[&cell], &file).unwrap());
        let svg = std::fs::read_to_string(&file).unwrap();
        assert!(
            svg.contains("rmz") && svg.contains("250 ms (2.50x)"),
            "{svg}"
        );
        assert!(!draw(&[&CellResult::default()], &file).unwrap());
    }
}
