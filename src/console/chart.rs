//! Graphs as SVG, drawn where the page is made. Each stands beside a table with the same numbers, for those who cannot
//! see it, so the drawing itself is hidden from them.

use std::fmt::Write as _;

use super::markup::Markup;

/// The size of the drawing, which the page stretches.
const WIDTH: u64 = 600;
const HEIGHT: u64 = 120;

/// How many points a graph has at most.
const POINTS: usize = 120;

/// Returns at most so many of some items, evenly spread, the last one among them.
pub(super) fn spread<T>(items: &[T], most: usize) -> Vec<&T> {
    let step = items.len().div_ceil(most.max(1)).max(1);
    let mut chosen: Vec<&T> = items.iter().rev().step_by(step).collect();
    chosen.reverse();
    chosen
}

/// Draws quantities that lie on top of each other, such as nodes by commit: for each point of time one number of each
/// kind.
pub(super) fn areas(points: &[Vec<u64>]) -> Markup {
    let points = spread(points, POINTS);
    let kinds = points.iter().map(|it| it.len()).max().unwrap_or_default();
    let most = points.iter().map(|it| it.iter().sum()).max().unwrap_or_default();
    let mut below: Vec<u64> = vec![0; points.len()];
    let mut drawing = String::new();
    for kind in 0..kinds {
        let above: Vec<u64> = points
            .iter()
            .zip(&below)
            .map(|(point, below)| below + point.get(kind).copied().unwrap_or_default())
            .collect();
        let edge = |heights: &[u64]| -> Vec<String> {
            let place = |(at, height): (usize, &u64)| {
                format!("{},{}", x(at, heights.len()), y(*height, most))
            };
            heights.iter().enumerate().map(place).collect()
        };
        let (upper, mut lower) = (edge(&above), edge(&below));
        lower.reverse();
        // A string takes whatever is written to it.
        let _written = write!(
            drawing,
            "<polygon class=\"kind{kind}\" points=\"{} {}\"/>",
            upper.join(" "),
            lower.join(" ")
        );
        below = above;
    }
    framed(&drawing)
}

/// Draws one quantity for each interval as a bar.
pub(super) fn bars(values: &[u64]) -> Markup {
    let values = spread(values, POINTS);
    let most = values.iter().map(|it| **it).max().unwrap_or_default();
    let count = (values.len() as u64).max(1);
    let mut drawing = String::new();
    for (number, value) in (0..).zip(values) {
        let (left, right) = (number * WIDTH / count, (number + 1) * WIDTH / count);
        let top = y(*value, most);
        let width = right.saturating_sub(left).saturating_sub(1).max(1);
        let _written = write!(
            drawing,
            "<rect class=\"kind0\" x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{}\"/>",
            HEIGHT.saturating_sub(top)
        );
    }
    framed(&drawing)
}

fn framed(drawing: &str) -> Markup {
    Markup::of_parts(format!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" aria-hidden=\"true\" focusable=\"false\">{drawing}</svg>"
    ))
}

/// The place of a point from the left; one alone is drawn at the start.
fn x(at: usize, points: usize) -> u64 {
    let last = (points as u64).saturating_sub(1).max(1);
    at as u64 * WIDTH / last
}

/// The place of a number from above.
fn y(value: u64, most: u64) -> u64 {
    let height = u128::from(value) * u128::from(HEIGHT) / u128::from(most.max(1));
    HEIGHT.saturating_sub(u64::try_from(height).unwrap_or(HEIGHT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_many_points_is_kept() {
        let items: Vec<u32> = (0..1000).collect();
        let chosen = spread(&items, 120);
        assert!(chosen.len() <= 120, "{}", chosen.len());
        assert_eq!(chosen.last(), Some(&&999));
        assert_eq!(spread(&items[..3], 120), [&0, &1, &2]);
        assert!(spread::<u32>(&[], 120).is_empty());
    }

    #[test]
    fn quantities_lie_on_top_of_each_other() {
        let drawn = areas(&[vec![1, 1], vec![0, 4]]).to_string();
        assert!(
            drawn.contains("<polygon class=\"kind0\" points=\"0,90 600,120 600,120 0,120\"/>"),
            "{drawn}"
        );
        assert!(
            drawn.contains("<polygon class=\"kind1\" points=\"0,60 600,0 600,120 0,90\"/>"),
            "{drawn}"
        );
    }

    #[test]
    fn any_numbers_can_be_drawn() {
        for values in [&[][..], &[0], &[0, 0], &[u64::MAX, 1], &[7; 1000]] {
            let drawn = bars(values).to_string();
            assert!(drawn.starts_with("<svg") && drawn.len() < 12_000, "{}", drawn.len());
            areas(&values.iter().map(|it| vec![it / 2, it / 2]).collect::<Vec<_>>());
        }
        assert!(
            bars(&[5, 10]).to_string().contains("x=\"300\" y=\"0\" width=\"299\" height=\"120\"")
        );
    }
}
