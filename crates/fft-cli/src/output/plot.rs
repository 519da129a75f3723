//! Small pictures of a few curves, an energy spectrum for instance: as characters for a terminal, as SVG for a file.
//!
//! Both are drawn from one [`Frame`]: the two axes, with their ranges and ticks, and the points in the unit square.

mod axis;
mod svg;
mod terminal;
#[cfg(test)]
mod tests;

use axis::Axis;

/// Curves over common axes, each with its name. Points are joined in the order in which they come; those that cannot
/// be shown (not finite, or not positive on a logarithmic axis) are left out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plot {
    /// Above the picture.
    pub(crate) title: String,
    /// What the horizontal axis counts, and in which unit.
    pub(crate) x_label: String,
    /// What the vertical axis counts, and in which unit.
    pub(crate) y_label: String,
    /// The curves. A curve without a name does not appear in the legend.
    pub(crate) series: Vec<(String, Vec<(f64, f64)>)>,
    /// Whether the horizontal axis is logarithmic.
    pub(crate) log_x: bool,
    /// Whether the vertical axis is logarithmic.
    pub(crate) log_y: bool,
}

impl Plot {
    /// The picture in characters: lines in Braille dots, a letter at some points of each curve to tell them apart.
    /// `width` and `height` count characters; a size too small to show anything is enlarged to 32 by 10,
    /// and names that take more lines of legend than that leaves make the picture taller.
    pub(crate) fn to_terminal(&self, width: usize, height: usize) -> String {
        terminal::draw(self, width.clamp(32, 1000), height.clamp(10, 1000))
    }

    /// The picture as an SVG file that needs nothing else: 760 by 480 pixels, on white.
    pub(crate) fn to_svg(&self) -> String {
        svg::draw(self)
    }

    fn frame(&self) -> Frame {
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

/// What is to be drawn, apart from the means.
struct Frame {
    x: Axis,
    y: Axis,
    /// The points of each curve, from `[0, 0]` at the lower left to `[1, 1]`.
    curves: Vec<Vec<[f64; 2]>>,
}

impl Frame {
    fn is_empty(&self) -> bool {
        self.curves.iter().all(Vec::is_empty)
    }
}

/// Of points on a surface, those that are to be marked: the first, and each that is `distance` away from the last
/// one that was.
fn spaced(points: &[[f64; 2]], distance: f64) -> Vec<[f64; 2]> {
    let mut marked: Vec<[f64; 2]> = Vec::new();
    for &[x, y] in points {
        if marked.last().is_none_or(|last| (x - last[0]).hypot(y - last[1]) >= distance) {
            marked.push([x, y]);
        }
    }
    marked
}

/// A text in at most `width` characters, none of which moves a cursor.
fn fit(text: &str, width: usize) -> String {
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    let mut fitted: String = text.chars().map(visible).take(width).collect();
    if text.chars().count() > width {
        fitted.pop();
        fitted.push('…');
    }
    fitted
}
