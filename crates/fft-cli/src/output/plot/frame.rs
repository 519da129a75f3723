//! A plot, and its points in the unit square.

use super::axis::Axis;

/// Curves over common axes. Points that are not finite, or not positive on a logarithmic axis, are
/// left out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plot {
    pub(crate) title: String,
    pub(crate) x_label: String,
    pub(crate) y_label: String,
    /// Names and points. A curve without a name is not in the legend.
    pub(crate) series: Vec<(String, Vec<(f64, f64)>)>,
    pub(crate) log_x: bool,
    pub(crate) log_y: bool,
}

impl Plot {
    /// The points of all curves in the unit square, and the axes.
    pub(super) fn frame(&self) -> Frame {
        let shown =
            |&&(x, y): &&(f64, f64)| Axis::can_show(x, self.log_x) && Axis::can_show(y, self.log_y);
        let points = || self.series.iter().flat_map(|(_, points)| points).filter(shown);
        let x = Axis::around(points().map(|p| p.0), self.log_x);
        let y = Axis::around(points().map(|p| p.1), self.log_y);
        let place = |points: &Vec<(f64, f64)>| {
            points.iter().filter(shown).map(|p| [x.place(p.0), y.place(p.1)]).collect()
        };
        let curves = self.series.iter().map(|(_, points)| place(points)).collect();
        Frame { x, y, curves }
    }
}

/// The axes, and the points of each curve from `[0, 0]` at the lower left to `[1, 1]`.
pub(super) struct Frame {
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) curves: Vec<Vec<[f64; 2]>>,
}

impl Frame {
    pub(super) fn is_empty(&self) -> bool {
        self.curves.iter().all(Vec::is_empty)
    }
}

/// The points to be marked: the first, and each at least `distance` away from the last one.
pub(super) fn spaced(points: &[[f64; 2]], distance: f64) -> Vec<[f64; 2]> {
    let mut marked: Vec<[f64; 2]> = Vec::new();
    for &[x, y] in points {
        if marked.last().is_none_or(|last| (x - last[0]).hypot(y - last[1]) >= distance) {
            marked.push([x, y]);
        }
    }
    marked
}

/// A text in at most `width` characters, without control characters.
pub(super) fn fit(text: &str, width: usize) -> String {
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    let mut fitted: String = text.chars().map(visible).take(width).collect();
    if text.chars().count() > width {
        fitted.pop();
        fitted.push('…');
    }
    fitted
}
