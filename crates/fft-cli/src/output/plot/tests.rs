use std::f64::consts::PI;

use proptest::prelude::*;
use roxmltree::Document;

use super::Plot;
use super::axis::Axis;

fn plot(log: bool, series: &[(&str, &[(f64, f64)])]) -> Plot {
    Plot {
        title: "Energy spectrum".into(),
        x_label: "wavenumber k".into(),
        y_label: "E(k)".into(),
        series: series.iter().map(|&(name, points)| (name.into(), points.to_vec())).collect(),
        log_x: log,
        log_y: log,
    }
}

#[test]
fn a_power_law_in_the_terminal() {
    let points: Vec<_> = (1..=32).map(|k| (f64::from(k), f64::from(k).powf(-5.0 / 3.0))).collect();
    let expected = "
          Energy spectrum
             o k^(-5/3)
E(k)
   1 ┤ o⢄⡀
     │   ⠈⠑⠢o⡀
     │       ⠈⠑⠢⢄
10⁻¹ ┤           ⠉o⠤⢄
     │               ⠉⠒o⣀
     │                   ⠑⠢⠤⡀
10⁻² ┤                      ⠈o⠢⢄⡀
     │                          ⠈⠑o
     └─┬─────────────────┬──────────
       1                10
            wavenumber k
";
    assert_eq!(format!("\n{}", plot(true, &[("k^(-5/3)", &points)]).to_terminal(36, 14)), expected);
}

#[test]
fn labels_of_axes() {
    let labels = |lo: f64, hi: f64, log: bool, most: usize| {
        let ticks = Axis::around([lo, hi].into_iter(), log).ticks(most);
        let labels: Vec<_> = ticks.into_iter().filter_map(|tick| tick.label).collect();
        labels.join(" ")
    };
    assert_eq!(labels(1.0, 32.0, true, 8), "1 2 5 10 20");
    assert_eq!(labels(1.0, 256.0, true, 7), "1 10 100");
    assert_eq!(labels(1e-6, 1.0, true, 8), "10⁻⁶ 10⁻⁵ 10⁻⁴ 10⁻³ 10⁻² 10⁻¹ 1");
    assert_eq!(labels(1e-16, 1.0, true, 8), "10⁻¹⁵ 10⁻¹² 10⁻⁹ 10⁻⁶ 10⁻³ 1");
    assert_eq!(labels(3.0, 4.0, true, 5), "3.0 3.5 4.0");
    assert_eq!(labels(2e-9, 8e-9, true, 5), "2×10⁻⁹ 5×10⁻⁹");
    assert_eq!(labels(0.0, 1.0, false, 6), "0.0 0.2 0.4 0.6 0.8 1.0");
    assert_eq!(labels(-1.0, 1.0, false, 5), "-1.0 -0.5 0.0 0.5 1.0");
    assert_eq!(labels(0.0, 3e9, false, 4), "0 1×10⁹ 2×10⁹ 3×10⁹");
    assert_eq!(labels(0.0, 5e-7, false, 4), "0 2×10⁻⁷ 4×10⁻⁷");
    assert_eq!(labels(7.0, 7.0, false, 4), "4 6 8 10");
    assert_eq!(labels(7.0, 7.0, true, 6), "1 2 5 10 20 50");
}

#[test]
fn what_cannot_be_shown_is_left_out() {
    let plot = plot(
        true,
        &[(
            "",
            &[
                (0.0, 1e9),
                (1.0, 1.0),
                (2.0, -1.0),
                (f64::NAN, 1.0),
                (8.0, f64::INFINITY),
                (4.0, 2.0),
            ],
        )],
    );
    let frame = plot.frame();
    assert_eq!(frame.curves[0].len(), 2);
    // Nor do they stretch the axes.
    assert!(frame.y.place(2.0) > 0.9 && frame.x.place(4.0) > 0.9);
}

#[test]
fn pictures_of_next_to_nothing() {
    for log in [false, true] {
        for series in [&[][..], &[("nothing", &[][..])]] {
            let plot = plot(log, series);
            assert!(
                plot.to_terminal(80, 24).contains("no data") && plot.to_svg().contains("no data")
            );
        }
        let point = plot(log, &[("point", &[(3.0, 4e-7)])]);
        assert_eq!(point.frame().curves, [[[0.5, 0.5]]]);
        assert_eq!(
            point.to_terminal(80, 24).matches('o').count(),
            "wavenumber".matches('o').count() + 3
        );
        let constant = plot(log, &[("", &[(1.0, 7.0), (16.0, 7.0)])]);
        assert!(constant.frame().curves[0].iter().all(|point| point[1] == 0.5));
    }
}

#[test]
fn texts_cannot_break_out() {
    let text = "<b a=\"1\">&'\u{1b}[31m\n\u{0}\u{ffff}";
    let plot = Plot {
        title: text.into(),
        x_label: text.into(),
        y_label: text.into(),
        ..plot(false, &[(text, &[])])
    };
    let svg = plot.to_svg();
    let document = Document::parse(&svg).unwrap();
    let shown = "<b a=\"1\">&' [31m  \u{fffd}";
    assert_eq!(
        document.descendants().filter(|node| node.is_text() && node.text() == Some(shown)).count(),
        5
    );
    assert!(!plot.to_terminal(80, 24).contains(['\u{1b}', '\0']));
    let long = Plot { title: "x".repeat(1000), ..plot };
    assert!(long.to_terminal(80, 24).starts_with(&format!("{}…\n", "x".repeat(79))));
}

#[test]
fn many_curves() {
    let points: [_; 3] = [(0.0, 1.0), (PI, 2.0), (5.0, 3.0)];
    let names: Vec<String> = (0..20).map(|i| format!("curve number {i}")).collect();
    let series: Vec<_> = names.iter().map(|name| (&name[..], &points[..])).collect();
    let plot = plot(false, &series);
    assert!(names.iter().all(|name| plot.to_terminal(80, 24).contains(name)));
    check(&plot, 80, 24);
}

/// The SVG is XML, every coordinate is a number inside the picture, and no line of characters is
/// too long.
fn check(plot: &Plot, width: usize, height: usize) {
    let svg = plot.to_svg();
    let document = Document::parse(&svg).unwrap();
    let tall: f64 = document.root_element().attribute("height").unwrap().parse().unwrap();
    let inside = |x: f64, y: f64| (0.0..=760.0).contains(&x) && (0.0..=tall).contains(&y);
    let number = |node: roxmltree::Node<'_, '_>, name| {
        node.attribute(name).map(|n| n.parse::<f64>().unwrap())
    };
    for node in document.descendants() {
        assert!(
            inside(number(node, "x").unwrap_or(0.0), number(node, "y").unwrap_or(0.0)),
            "{svg}"
        );
        for point in node.attribute("points").unwrap_or("").split_whitespace() {
            let (x, y) = point.split_once(',').unwrap();
            assert!(inside(x.parse().unwrap(), y.parse().unwrap()), "{point}");
        }
    }
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");

    let text = plot.to_terminal(width, height);
    assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
    assert!(text.lines().count() == height || plot.series.len() > 1, "{text}");
}

/// Any number, the usual ones more often than the odd ones.
fn number() -> impl Strategy<Value = f64> {
    let close = (-1e-9..1e-9).prop_map(|x| 1e9 * (1.0 + x));
    prop_oneof![
        -1e3..1e3,
        0.0..1.0,
        close,
        any::<f64>(),
        Just(0.0),
        Just(5e-324),
        Just(1e300),
        Just(-1e300)
    ]
}

proptest! {
    #[test]
    fn any_numbers_give_a_picture(
        points in prop::collection::vec((number(), number()), 0..12),
        log_x: bool,
        log_y: bool,
        size in (32..120usize, 10..40usize),
    ) {
        check(&Plot { log_x, log_y, ..plot(false, &[("name", &points)]) }, size.0, size.1);
    }
}
