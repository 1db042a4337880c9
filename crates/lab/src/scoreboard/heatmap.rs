//! The scoreboard as an SVG picture, without script or font. It has a row per test case, and two
//! columns per congestion control. `shades` chooses which two measured quantities the columns show,
//! by the traffic that competes with the transfers.

use super::bound::Figure;
use super::grid::{Foreground, Scene};
use super::judge::Board;
use super::measure::Figures;
use std::fmt::Write as _;

/// Width of a square in pixels.
const SQUARE_WIDTH: usize = 46;
/// Height of a square in pixels.
const SQUARE_HEIGHT: usize = 17;
/// Width in pixels of the lines' names.
const NAMES_WIDTH: usize = 220;
/// Height in pixels of the columns' heads.
const HEAD_HEIGHT: usize = 74;
/// Pixels around everything.
const MARGIN_SIZE: usize = 14;
/// Pixels between two laws, and between two foregrounds.
const GAP_SIZE: usize = 8;

/// The colours of a foreground: for each of two columns a heading, a figure, and its best and worst
/// value.
struct HeatScale {
    heading: &'static str,
    figure: Figure,
    best: f64,
    worst: f64,
    /// Whether the scale is logarithmic: three is as far from one as nine is from three.
    ratio: bool,
}

const HARM_SCALE: HeatScale =
    HeatScale { heading: "p90", figure: Figure::P90, best: 1.0, worst: 4.0, ratio: true };
const SHARE_SCALE: HeatScale =
    HeatScale { heading: "share", figure: Figure::Share, best: 0.95, worst: 0.3, ratio: false };
const KEEPS_SCALE: HeatScale =
    HeatScale { heading: "keeps", figure: Figure::Keeps, best: 1.0, worst: 0.5, ratio: false };
const AGAIN_SCALE: HeatScale =
    HeatScale { heading: "again s", figure: Figure::Regain, best: 1.0, worst: 10.0, ratio: true };
const JAIN_SCALE: HeatScale =
    HeatScale { heading: "Jain", figure: Figure::Jain, best: 1.0, worst: 0.5, ratio: false };

/// The two columns of a law beside a foreground.
const fn shades(foreground: Foreground) -> [&'static HeatScale; 2] {
    match foreground {
        Foreground::Nobody => [&JAIN_SCALE, &SHARE_SCALE],
        _ if foreground.is_bulk() => [&KEEPS_SCALE, &AGAIN_SCALE],
        _ => [&HARM_SCALE, &SHARE_SCALE],
    }
}

/// The colours from best to worst, also for the colour-blind: `blue, pale, orange, dark red`.
const COLOUR_RAMP: [(f64, [f64; 3]); 4] = [
    (0.0, [96.0, 160.0, 206.0]),
    (0.35, [242.0, 242.0, 236.0]),
    (0.7, [236.0, 150.0, 70.0]),
    (1.0, [150.0, 32.0, 40.0]),
];

impl HeatScale {
    /// How bad a value is, 0 to 1.
    fn badness(&self, value: f64) -> f64 {
        let scale = |value: f64| if self.ratio { libm::log(value.max(1e-9)) } else { value };
        ((scale(value) - scale(self.best)) / (scale(self.worst) - scale(self.best))).clamp(0.0, 1.0)
    }

    fn square(&self, figures: &Figures, foreground: Foreground) -> Option<(String, String, bool)> {
        let value = self.figure.of(figures, foreground)?;
        let bad = self.badness(value);
        let text = match value {
            value if value.is_infinite() => "never".to_owned(),
            value if value >= 10.0 => format!("{value:.0}"),
            value => format!("{value:.2}"),
        };
        Some((colour(bad), text, bad > 0.85))
    }
}

fn colour(bad: f64) -> String {
    let above = COLOUR_RAMP.iter().position(|(at, _)| *at >= bad).unwrap_or(COLOUR_RAMP.len() - 1).max(1);
    let (from, to) = (COLOUR_RAMP[above - 1], COLOUR_RAMP[above]);
    let part = (bad - from.0) / (to.0 - from.0);
    let mix = |channel: usize| libm::round(from.1[channel] + part * (to.1[channel] - from.1[channel])) as u8;
    format!("#{:02x}{:02x}{:02x}", mix(0), mix(1), mix(2))
}

/// The picture of `laws` in the scenes of `board` that have figures. `below` is the caption, with
/// date and commit.
#[must_use]
pub fn draw(board: &Board, laws: &[&str], below: &str) -> String {
    let law_wide = 2 * SQUARE_WIDTH + GAP_SIZE;
    let wide = 2 * MARGIN_SIZE + NAMES_WIDTH + laws.len() * law_wide;
    let mut body = String::new();
    let mut y = MARGIN_SIZE;
    for foreground in Foreground::ALL {
        let scenes: Vec<(usize, &Scene)> = board
            .scenes()
            .iter()
            .enumerate()
            .filter(|(_, scene)| scene.foreground == foreground)
            .filter(|(place, _)| laws.iter().any(|law| board.at(*place, law).is_some()))
            .collect();
        if scenes.is_empty() {
            continue;
        }
        head(&mut body, foreground, laws, y);
        y += HEAD_HEIGHT;
        let mut line = String::new();
        for (place, scene) in scenes {
            let name = scene.line.to_string();
            if name != line {
                text(&mut body, (MARGIN_SIZE, y + SQUARE_HEIGHT - 4), "start", "i", &name);
                line = name;
            }
            text(&mut body, (MARGIN_SIZE + NAMES_WIDTH - 8, y + SQUARE_HEIGHT - 4), "end", "s", &scene.who());
            for (column, law) in laws.iter().enumerate() {
                let Some(figures) = board.at(place, law) else { continue };
                for (half, shade) in shades(foreground).into_iter().enumerate() {
                    let x = MARGIN_SIZE + NAMES_WIDTH + column * law_wide + half * SQUARE_WIDTH;
                    square(&mut body, (x, y), shade.square(figures, foreground));
                }
            }
            y += SQUARE_HEIGHT;
        }
        y += 2 * GAP_SIZE;
    }
    text(&mut body, (MARGIN_SIZE, y + SQUARE_HEIGHT), "start", "s", below);
    let high = y + 2 * SQUARE_HEIGHT;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{wide}\" height=\"{high}\" viewBox=\"0 0 {wide} {high}\">\n\
         <style>text{{font:11px sans-serif}}.i{{fill:#222}}.s{{fill:#666}}.w{{fill:#fff}}.h{{fill:#222;font-size:14px;font-weight:bold}}.l{{fill:#222;font-size:12px;font-weight:bold}}</style>\n\
         <rect width=\"{wide}\" height=\"{high}\" fill=\"#fff\"/>\n{body}</svg>\n"
    )
}

/// Draws the head of a foreground's part: its name, the laws, and the headings of their columns.
fn head(body: &mut String, foreground: Foreground, laws: &[&str], y: usize) {
    let law_wide = 2 * SQUARE_WIDTH + GAP_SIZE;
    text(body, (MARGIN_SIZE, y + 20), "start", "h", &format!("Beside {}", foreground.name()));
    text(body, (MARGIN_SIZE, y + HEAD_HEIGHT - 6), "start", "s", "rate, RTT, queue");
    text(body, (MARGIN_SIZE + NAMES_WIDTH - 8, y + HEAD_HEIGHT - 6), "end", "s", "transfers");
    for (column, law) in laws.iter().enumerate() {
        let x = MARGIN_SIZE + NAMES_WIDTH + column * law_wide;
        text(body, (x + SQUARE_WIDTH, y + HEAD_HEIGHT - 24), "middle", "l", law);
        for (half, shade) in shades(foreground).into_iter().enumerate() {
            text(
                body,
                (x + half * SQUARE_WIDTH + SQUARE_WIDTH / 2, y + HEAD_HEIGHT - 6),
                "middle",
                "s",
                shade.heading,
            );
        }
    }
}

fn square(body: &mut String, (x, y): (usize, usize), shown: Option<(String, String, bool)>) {
    let Some((colour, value, dark)) = shown else { return };
    let _ = writeln!(
        body,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" fill=\"{colour}\"/>",
        SQUARE_WIDTH - 1,
        SQUARE_HEIGHT - 1
    );
    text(body, (x + SQUARE_WIDTH / 2, y + SQUARE_HEIGHT - 5), "middle", if dark { "w" } else { "i" }, &value);
}

fn text(body: &mut String, (x, y): (usize, usize), anchor: &str, class: &str, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let _ =
        writeln!(body, "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" class=\"{class}\">{text}</text>");
}

#[cfg(test)]
mod tests {
    use super::super::scenes::{Form, scenes};
    use super::*;

    #[test]
    fn a_square_is_the_redder_the_worse() {
        let figures = |p90| Figures { p90, ..Figures::default() };
        let square = |p90| HARM_SCALE.square(&figures(p90), Foreground::Requests).expect("a square");
        assert_eq!(square(Some(0.9)), (colour(0.0), "0.90".into(), false));
        assert_eq!(square(None), (colour(1.0), "never".into(), true));
        assert!(
            (HARM_SCALE.badness(2.0) - 0.5).abs() < 1e-9 && (SHARE_SCALE.badness(0.3) - 1.0).abs() < 1e-9
        );
        let red = |bad| u8::from_str_radix(&colour(bad)[1..3], 16).expect("a number");
        let blue = |bad| u8::from_str_radix(&colour(bad)[5..7], 16).expect("a number");
        assert!(red(0.0) < blue(0.0) && red(1.0) > blue(1.0));
        assert_eq!(SHARE_SCALE.square(&Figures::default(), Foreground::Requests), None);
    }

    #[test]
    fn a_board_without_rows_is_a_picture_without_parts() {
        let svg = draw(&Board::new(&scenes(Form::Quick), &[]), &["cubic"], "today & <here>");
        assert!(
            !svg.contains("Beside") && svg.contains("today &amp; &lt;here>") && svg.ends_with("</svg>\n")
        );
    }
}
