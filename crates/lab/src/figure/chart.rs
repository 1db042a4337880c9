//! Draws lines and bars as SVG: axes with units, one colour a series, a legend that does not cover
//! the data.

use plotters::prelude::*;
use plotters::series::LineSeries;
use std::ops::Range;

/// Width and height of a figure in pixels.
const FIGURE_SIZE: (u32, u32) = (860, 400);
/// Height of a panel beneath the first.
const LOWER_PANEL_HEIGHT: u32 = 230;
/// Colours that are also distinct for colour-blind people (Okabe and Ito).
const SERIES_COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(110, 110, 110),
    RGBColor(0, 0, 0),
];
const GRID_COLOUR: RGBColor = RGBColor(228, 228, 228);
const INK_COLOUR: RGBColor = RGBColor(60, 60, 60);
/// Width in pixels of the legend, which is to the right of the data.
const LEGEND_WIDTH: i32 = 190;
/// The longest name in the legend, in characters.
const MAX_NAME_CHARS: usize = 27;

/// A line of a chart: its name, and its points in order of x.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The line's name in the legend.
    pub name: String,
    /// The line's points (x, y), in the units of the axes.
    pub points: Vec<(f64, f64)>,
}

/// Bars of one colour: a value for each category, perhaps with an interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// The name in the legend.
    pub name: String,
    /// The value for each category, with the lower and upper end of its interval.
    pub values: Vec<Option<(f64, f64, f64)>>,
}

/// Why a figure could not be drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot draw {title:?}: {why}")]
pub struct DrawError {
    title: String,
    why: String,
}

impl DrawError {
    /// `why` the figure called `title` cannot be drawn.
    #[must_use]
    pub fn new(title: &str, why: String) -> Self {
        Self { title: title.to_owned(), why }
    }
}

fn failed(title: &str) -> impl Fn(String) -> DrawError + '_ {
    |why| DrawError::new(title, why)
}

fn colour(index: usize) -> RGBColor {
    SERIES_COLOURS.get(index % SERIES_COLOURS.len()).copied().unwrap_or(INK_COLOUR)
}

/// A round number at or above `most`, for the end of an axis.
fn ceiling(most: f64) -> f64 {
    if !(most > 0.0 && most.is_finite()) {
        return 1.0;
    }
    let power = libm::pow(10.0, libm::floor(libm::log10(most)));
    [1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0]
        .into_iter()
        .map(|step| step * power)
        .find(|end| *end >= most * 1.02)
        .unwrap_or(12.0 * power)
}

fn short(name: &str) -> String {
    if name.chars().count() <= MAX_NAME_CHARS {
        return name.to_owned();
    }
    name.chars().take(MAX_NAME_CHARS - 1).chain(['…']).collect()
}

/// A number for an axis, without trailing zeros.
fn tick(value: f64) -> String {
    let text = if value.abs() >= 100.0 || libm::trunc(value) == value {
        format!("{value:.0}")
    } else if value.abs() >= 1.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    };
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A chart of lines with one y axis.
#[derive(Clone, Copy, Debug)]
pub struct Panel<'a> {
    /// The label of the y axis, with its unit.
    pub y: &'a str,
    /// The lines of the chart.
    pub lines: &'a [Line],
}

impl Panel<'_> {
    /// The points whose coordinates are finite.
    fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        self.lines.iter().flat_map(|line| finite(&line.points))
    }
}

fn finite(points: &[(f64, f64)]) -> impl Iterator<Item = (f64, f64)> {
    points.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite())
}

/// Lines over a common x axis.
///
/// # Errors
/// If there is no point, or the backend cannot draw.
pub fn lines(title: &str, x: &str, y: &str, series: &[Line]) -> Result<String, DrawError> {
    panels(title, x, &[Panel { y, lines: series }])
}

/// Draws panels one below the other, over a common x axis. The first panel is the tallest.
///
/// # Errors
/// If a panel has no point, or the backend cannot draw.
pub fn panels(title: &str, x: &str, panels: &[Panel<'_>]) -> Result<String, DrawError> {
    let wrong = failed(title);
    if panels.is_empty() || panels.iter().any(|panel| panel.points().next().is_none()) {
        return Err(wrong("there is nothing to show".into()));
    }
    let points = || panels.iter().flat_map(Panel::points);
    let left = points().map(|point| point.0).fold(f64::INFINITY, f64::min).min(0.0);
    let right = points().map(|point| point.0).fold(f64::NEG_INFINITY, f64::max);
    let right = if right > left { right } else { left + 1.0 };
    let below = panels.len() as u32 - 1;
    let mut svg = String::new();
    {
        let area =
            SVGBackend::with_string(&mut svg, (FIGURE_SIZE.0, FIGURE_SIZE.1 + LOWER_PANEL_HEIGHT * below))
                .into_drawing_area();
        area.fill(&WHITE).map_err(|error| wrong(error.to_string()))?;
        let (mut rest, mut drawn) = (area.clone(), 0);
        for (index, panel) in panels.iter().enumerate() {
            let here = if index as u32 == below {
                rest.clone()
            } else {
                let height = if index == 0 { FIGURE_SIZE.1 } else { LOWER_PANEL_HEIGHT };
                let (here, others) = rest.split_vertically(height as i32);
                rest = others;
                here
            };
            let title = (index == 0).then_some(title);
            let x = if index as u32 == below { x } else { "" };
            draw_panel(&here, title, (x, left..right), panel, drawn).map_err(&wrong)?;
            drawn += panel.lines.len();
        }
        area.present().map_err(|error| failed(title)(error.to_string()))?;
    }
    Ok(svg)
}

/// A panel, in whose figure `drawn` lines have been drawn before.
fn draw_panel(
    area: &Area<'_>,
    title: Option<&str>,
    (x, across): (&str, Range<f64>),
    panel: &Panel<'_>,
    drawn: usize,
) -> Result<(), String> {
    let low = panel.points().map(|point| point.1).fold(0.0, f64::min);
    let top = ceiling(panel.points().map(|point| point.1).fold(0.0, f64::max));
    let (plot, legend) = area.split_horizontally(FIGURE_SIZE.0 as i32 - LEGEND_WIDTH);
    let mut builder = ChartBuilder::on(&plot);
    if let Some(title) = title {
        builder.caption(title, ("sans-serif", 17).into_font().color(&INK_COLOUR));
    }
    let mut chart = builder
        .margin(10)
        .x_label_area_size(if x.is_empty() { 22 } else { 42 })
        .y_label_area_size(58)
        .build_cartesian_2d(across, low..top)
        .map_err(|error| error.to_string())?;
    chart
        .configure_mesh()
        .x_desc(x)
        .y_desc(panel.y)
        .x_label_formatter(&|value| tick(*value))
        .y_label_formatter(&|value| tick(*value))
        .label_style(("sans-serif", 12).into_font().color(&INK_COLOUR))
        .axis_desc_style(("sans-serif", 13).into_font().color(&INK_COLOUR))
        .bold_line_style(GRID_COLOUR)
        .light_line_style(TRANSPARENT)
        .axis_style(INK_COLOUR)
        .draw()
        .map_err(|error| error.to_string())?;
    for (index, line) in panel.lines.iter().enumerate() {
        let colour = colour(drawn + index);
        chart
            .draw_series(LineSeries::new(finite(&line.points), colour.stroke_width(2)))
            .map_err(|error| error.to_string())?;
        // Few points are marked, so that one alone is seen too.
        if line.points.len() <= 24 {
            chart
                .draw_series(finite(&line.points).map(|point| Circle::new(point, 3, colour.filled())))
                .map_err(|error| error.to_string())?;
        }
    }
    let names: Vec<&str> = panel.lines.iter().map(|line| line.name.as_str()).collect();
    draw_legend(&legend, &names, drawn)
}

/// Groups of bars, one group a category, with intervals.
///
/// # Errors
/// If there is no bar, or the backend cannot draw.
pub fn bars(
    title: &str,
    x: &str,
    y: &str,
    categories: &[String],
    series: &[Bars],
) -> Result<String, DrawError> {
    let wrong = failed(title);
    let values = || series.iter().flat_map(|bars| bars.values.iter().flatten());
    if values().next().is_none() {
        return Err(wrong("there is nothing to show".into()));
    }
    let top = ceiling(values().map(|value| value.0.max(value.2)).fold(0.0, f64::max));
    let low = values().map(|value| value.0.min(value.1)).fold(0.0, f64::min);
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, FIGURE_SIZE).into_drawing_area();
        area.fill(&WHITE).map_err(|error| wrong(error.to_string()))?;
        let (plot, legend) = area.split_horizontally(FIGURE_SIZE.0 as i32 - LEGEND_WIDTH);
        let groups = categories.len().max(1);
        let mut chart = ChartBuilder::on(&plot)
            .caption(title, ("sans-serif", 17).into_font().color(&INK_COLOUR))
            .margin(10)
            .x_label_area_size(42)
            .y_label_area_size(58)
            .build_cartesian_2d(0.0..groups as f64, low..top)
            .map_err(|error| wrong(error.to_string()))?;
        let name_of = |value: &f64| {
            let index = libm::floor(*value);
            // Labels stand in the middle of a group.
            let middle = (value - index - 0.5).abs() < 0.26;
            if middle {
                categories.get(index as usize).map(|name| short(name)).unwrap_or_default()
            } else {
                String::new()
            }
        };
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(2 * groups + 1)
            .x_label_formatter(&name_of)
            .y_label_formatter(&|value| tick(*value))
            .x_desc(x)
            .y_desc(y)
            .label_style(("sans-serif", 12).into_font().color(&INK_COLOUR))
            .axis_desc_style(("sans-serif", 13).into_font().color(&INK_COLOUR))
            .bold_line_style(GRID_COLOUR)
            .light_line_style(TRANSPARENT)
            .axis_style(INK_COLOUR)
            .draw()
            .map_err(|error| wrong(error.to_string()))?;
        let width = 0.8 / series.len().max(1) as f64;
        for (index, bars) in series.iter().enumerate() {
            for (group, value) in bars.values.iter().enumerate() {
                let Some((value, low, high)) = *value else { continue };
                let from = group as f64 + 0.1 + width * index as f64;
                let middle = from + width * 0.46;
                let bar = Rectangle::new(
                    [(from, 0.0), (from + width * 0.92, value)],
                    colour(index).mix(0.85).filled(),
                );
                let whisker = PathElement::new(vec![(middle, low), (middle, high)], INK_COLOUR);
                chart.draw_series([bar]).map_err(|error| wrong(error.to_string()))?;
                chart.draw_series([whisker]).map_err(|error| wrong(error.to_string()))?;
            }
        }
        let names: Vec<&str> = series.iter().map(|bars| bars.name.as_str()).collect();
        draw_legend(&legend, &names, 0).map_err(wrong)?;
        area.present().map_err(|error| failed(title)(error.to_string()))?;
    }
    Ok(svg)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// Draws names beside their colours. The first name has the figure's colour number `first`.
fn draw_legend(area: &Area<'_>, names: &[&str], first: usize) -> Result<(), String> {
    for (index, name) in names.iter().enumerate() {
        let y = 46 + 19 * index as i32;
        area.draw(&PathElement::new(vec![(4, y), (24, y)], colour(first + index).stroke_width(3)))
            .map_err(|error| error.to_string())?;
        area.draw(&Text::new(short(name), (30, y - 7), ("sans-serif", 12).into_font().color(&INK_COLOUR)))
            .map_err(|error| error.to_string())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_on_round_numbers() {
        for (most, end) in [(9.6, 10.0), (10.0, 12.0), (0.13, 0.15), (0.0, 1.0), (731.0, 800.0)] {
            assert!((ceiling(most) - end).abs() < 1e-9, "{most}: {}", ceiling(most));
        }
        assert_eq!(
            (tick(0.25), tick(2.0), tick(1.5), tick(1200.0)),
            ("0.25".into(), "2".into(), "1.5".into(), "1200".into())
        );
    }

    #[test]
    fn lines_name_their_axes_and_series() {
        let line = Line { name: "harp <&>".into(), points: vec![(0.0, 1.0), (1.0, f64::NAN), (2.0, 3.0)] };
        let svg = lines("Goodput", "time (s)", "Mbit/s", &[line]).expect("a figure");
        for text in ["Goodput", "time (s)", "Mbit/s", "harp &lt;&amp;&gt;"] {
            assert!(svg.contains(text), "{text}");
        }
        assert!(!svg.contains("NaN"));
        assert!(lines("Nothing", "x", "y", &[]).is_err());
    }

    #[test]
    fn a_panel_stands_beneath_another_with_colours_of_its_own() {
        let line = |name: &str, top| [Line { name: name.into(), points: vec![(0.0, 0.0), (2.0, top)] }];
        let (rate, queue) = (line("rate", 10.0), line("queue", 30.0));
        let both = [Panel { y: "Mbit/s", lines: &rate }, Panel { y: "ms", lines: &queue }];
        let svg = panels("Trace", "time (s)", &both).expect("a figure");
        for text in [">\nrate", ">\nqueue", "Mbit/s", ">\nms", "#0072B2", "#D55E00"] {
            assert!(svg.contains(text), "{text}: {svg}");
        }
        let [first, second] = [">\nMbit/s", ">\nms"].map(|text| svg.find(text));
        assert!(first < second && svg.matches("time (s)").count() == 1);
        assert!(panels("Nothing", "x", &[both[0], Panel { y: "ms", lines: &[] }]).is_err());
    }

    #[test]
    fn bars_stand_beside_each_other() {
        let series = [
            Bars { name: "a".into(), values: vec![Some((1.0, 0.9, 1.1)), None] },
            Bars { name: "b".into(), values: vec![Some((2.0, 2.0, 2.0)), Some((3.0, 2.5, 3.5))] },
        ];
        let svg = bars("T", "n", "s", &["one".into(), "two".into()], &series).expect("a figure");
        for text in ["one", "two", ">\na", ">\nb"] {
            assert!(svg.contains(text), "{text}: {svg}");
        }
    }
}
