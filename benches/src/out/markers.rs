//! Puts the tables between two markers of a page, and keeps the text around them.

use anyhow::{Context as _, Result};

/// Returns `document` with `text` between the markers of `name`.
///
/// # Errors
/// If a marker is missing.
pub(crate) fn replace(document: &str, name: &str, text: &str) -> Result<String> {
    let (open, close) = (
        format!("<!-- benches {name} -->"),
        format!("<!-- end of benches {name} -->"),
    );
    let missing = |marker: &str| format!("there is no line {marker}");
    let (before, rest) = document.split_once(&open).with_context(|| missing(&open))?;
    let (_, after) = rest.split_once(&close).with_context(|| missing(&close))?;
    Ok(format!(
        "{before}{open}\n\n{}\n\n{close}{after}",
        text.trim()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_markers_changes() {
        let document = "a\n<!-- benches quick -->\nold\n<!-- end of benches quick -->\nz\n";
        let once = replace(document, "quick", "new\n").unwrap();
        assert_eq!(
            once,
            "a\n<!-- benches quick -->\n\nnew\n\n<!-- end of benches quick -->\nz\n"
        );
        assert_eq!(replace(&once, "quick", "new").unwrap(), once);
    }

    #[test]
    fn a_missing_marker_is_an_error() {
        assert!(replace("<!-- benches quick -->", "quick", "").is_err());
        assert!(
            replace("", "full", "")
                .unwrap_err()
                .to_string()
                .contains("benches full")
        );
    }
}
