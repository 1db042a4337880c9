//! Judges the bounds of the product's background class. They are checked with rows of its law, or
//! of another law.

pub use super::bound::{Bound, Figure, KnownFailure, Limit};

use super::accepted;
use super::bounds;
use super::cell::CellRow;
use super::grid::{Foreground, PRODUCT_LAW, Scene};
use super::known::KNOWN_FAILURES;
use super::known_full::KNOWN_FULL_FAILURES;
use super::known_jitter::KNOWN_JITTER_FAILURES;
use super::measure::Figures;
use super::selection::LineSet;
use crate::acceptance::Acceptance;
use std::collections::BTreeMap;

/// A figure that is beyond its limit.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundMiss {
    /// The scene's name.
    pub scene: String,
    /// The name of the figure that misses its bound.
    pub figure: &'static str,
    /// The figure's value.
    pub value: f64,
    /// The limit of the figure.
    pub limit: f64,
    /// The reason and the acceptance of the miss. `None`: the miss is not known.
    pub known: Option<KnownMiss>,
}

/// The reason and the acceptance of a known miss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnownMiss {
    /// Why the bound is missed.
    pub reason: &'static str,
    /// How the value compares with the accepted one.
    pub acceptance: Acceptance,
}

impl BoundMiss {
    /// Whether the miss is known, and no worse than the accepted value.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.known.is_some_and(|known| matches!(known.acceptance, Acceptance::Alike | Acceptance::Better(_)))
    }
}

/// The result of a bound.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundResult {
    /// The name of the bound.
    pub id: &'static str,
    /// The text of the bound.
    pub says: &'static str,
    /// The number of figures that were compared with the bound.
    pub figures: usize,
    /// The scenes that missed the bound.
    pub missed: Vec<BoundMiss>,
}

impl BoundResult {
    /// Whether every miss of the bound is known, and no worse than accepted.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.missed.iter().all(BoundMiss::is_accepted)
    }
}

/// Figures by scene and law: medians over seeds.
#[derive(Clone, Debug, Default)]
pub struct Board {
    cells: BTreeMap<(usize, String), Figures>,
    scenes: Vec<Scene>,
}

impl Board {
    /// Makes the board from the rows about `scenes`.
    #[must_use]
    pub fn new(scenes: &[Scene], rows: &[CellRow]) -> Self {
        let places: BTreeMap<_, _> = scenes
            .iter()
            .enumerate()
            .map(|(place, scene)| {
                ((scene.line.to_string(), scene.foreground.name().to_owned(), scene.who()), place)
            })
            .collect();
        let mut seeds: BTreeMap<(usize, String), Vec<Figures>> = BTreeMap::new();
        for row in rows {
            let of = (row.line.clone(), row.foreground.clone(), row.who());
            if let Some(&place) = places.get(&of) {
                seeds.entry((place, row.law.clone())).or_default().push(row.figures);
            }
        }
        let cells = seeds.into_iter().filter_map(|((place, law), figures)| {
            let foreground = scenes.get(place)?.foreground;
            Some(((place, law), middle(&figures, foreground)))
        });
        Self { cells: cells.collect(), scenes: scenes.to_vec() }
    }

    /// Returns the scenes in order, with the figures of a law.
    pub fn of<'a>(&'a self, law: &'a str) -> impl Iterator<Item = (&'a Scene, &'a Figures)> {
        self.scenes
            .iter()
            .enumerate()
            .filter_map(move |(place, scene)| Some((scene, self.cells.get(&(place, law.to_owned()))?)))
    }

    /// The scenes for which the bound holds.
    #[must_use]
    pub fn scenes(&self) -> &[Scene] {
        &self.scenes
    }

    /// The figures of a law in the scene of this place.
    #[must_use]
    pub fn at(&self, place: usize, law: &str) -> Option<&Figures> {
        self.cells.get(&(place, law.to_owned()))
    }
}

/// The median of each figure over seeds (the lower of two in the middle).
fn middle(seeds: &[Figures], foreground: Foreground) -> Figures {
    let of = |figure: Figure| {
        let values = seeds.iter().filter_map(|figures| figure.of(figures, foreground)).map(Some);
        crate::request_times::percentile(values, 50.0).filter(|value| value.is_finite())
    };
    Figures {
        median: of(Figure::Median),
        p90: of(Figure::P90),
        late: of(Figure::Late),
        share: of(Figure::Share),
        fill: of(Figure::Fill),
        jain_first: of(Figure::JainFirst),
        jain: of(Figure::Jain),
        least: of(Figure::Least),
        of_one: of(Figure::OfOne),
        keeps: of(Figure::Keeps),
        regain: of(Figure::Regain),
    }
}

/// Makes a miss, with its known reason.
fn miss(bound: &str, scene: String, figure: &'static str, value: f64, limit: Limit) -> BoundMiss {
    let listed = KNOWN_FAILURES.iter().chain(KNOWN_FULL_FAILURES).chain(KNOWN_JITTER_FAILURES);
    let mut of_it = listed.filter(|known| known.bound == bound && scene.starts_with(known.scene));
    let known = of_it.next().map(|known| KnownMiss {
        reason: known.reason,
        acceptance: accepted::compare(bound, &scene, figure, value, limit),
    });
    let (Limit::AtMost(bound_at) | Limit::AtLeast(bound_at)) = limit;
    BoundMiss { scene, figure, value, limit: bound_at, known }
}

/// Judges the figures of a law by the bounds of these lines. Known reasons apply only to the
/// product's law.
#[must_use]
pub fn judge(board: &Board, lines: LineSet, law: &str) -> Vec<BoundResult> {
    let mut judged: Vec<BoundResult> = bounds_of(lines).iter().map(|bound| one(board, law, bound)).collect();
    // Where packets are lost by chance, a CUBIC takes next to nothing and so harms nobody.
    if lines == LineSet::Grid {
        judged.push(less_than_cubic(board, law));
    }
    judged.push(undominated(board, law));
    if law != PRODUCT_LAW {
        judged.iter_mut().flat_map(|judged| &mut judged.missed).for_each(|miss| miss.known = None);
    }
    judged.retain(|judged| judged.figures > 0);
    judged
}

/// Returns the bounds for these lines.
fn bounds_of(lines: LineSet) -> &'static [Bound] {
    match lines {
        LineSet::Grid => bounds::PRODUCT_BOUNDS,
        LineSet::Jitter => bounds::JITTER_BOUNDS,
    }
}

fn one(board: &Board, law: &str, bound: &Bound) -> BoundResult {
    let mut judged = BoundResult { id: bound.id, says: bound.says, figures: 0, missed: Vec::new() };
    for (scene, figures) in board.of(law).filter(|(scene, _)| (bound.of)(scene)) {
        for &(figure, limit) in bound.limits {
            let Some(value) = figure.of(figures, scene.foreground) else { continue };
            judged.figures += 1;
            if !limit.holds(value) {
                judged.missed.push(miss(bound.id, scene.to_string(), figure.name(), value, limit));
            }
        }
    }
    judged
}

/// The law harms no more than CUBIC in the same scene.
fn less_than_cubic(board: &Board, law: &str) -> BoundResult {
    let mut judged = BoundResult {
        id: "cubic",
        says: "never more harm than CUBIC in the same scene",
        figures: 0,
        missed: Vec::new(),
    };
    for (place, scene) in board.scenes().iter().enumerate() {
        let (Some(own), Some(cubic)) = (board.at(place, law), board.at(place, "cubic")) else { continue };
        for figure in [Figure::Median, Figure::P90] {
            let of = |figures| figure.of(figures, scene.foreground);
            let (Some(value), Some(limit)) = (of(own), of(cubic)) else { continue };
            judged.figures += 1;
            if !(value.is_infinite() && limit.is_infinite()) && value > limit + bounds::RATIO_TOLERANCE {
                let limit = Limit::AtMost(limit);
                judged.missed.push(miss("cubic", scene.to_string(), figure.name(), value, limit));
            }
        }
    }
    judged
}

/// In most scenes no rival both harms less and uses more.
fn undominated(board: &Board, law: &str) -> BoundResult {
    let mut better: Vec<String> = Vec::new();
    let mut scenes = 0;
    for (place, scene) in board.scenes().iter().enumerate() {
        let pair = |figures: &Figures| Some((harm(figures, scene.foreground)?, figures.share?));
        let Some((harm, share)) = board.at(place, law).and_then(pair) else { continue };
        let mut rivals = board.cells.range((place, String::new())..(place + 1, String::new()));
        scenes += 1;
        let beaten = rivals.any(|((_, rival), figures)| {
            rival != law
                && pair(figures).is_some_and(|other| {
                    other.0 < harm - bounds::RATIO_TOLERANCE && other.1 > share + bounds::RATIO_TOLERANCE
                })
        });
        if beaten {
            better.push(scene.to_string());
        }
    }
    let part = 1.0 - better.len() as f64 / f64::from(scenes).max(1.0);
    let all = || miss("undominated", String::new(), "part", part, Limit::AtLeast(bounds::UNDOMINATED_SHARE));
    let missed = (part < bounds::UNDOMINATED_SHARE).then(|| BoundMiss { scene: better.join(", "), ..all() });
    BoundResult {
        id: "undominated",
        says: "in 90 % of the scenes no rival both harms less and uses more",
        figures: scenes as usize,
        missed: missed.into_iter().collect(),
    }
}

/// Returns the harm to a foreground that waits, in one number: the 90th percentile.
#[must_use]
pub fn harm(figures: &Figures, foreground: Foreground) -> Option<f64> {
    Figure::P90.of(figures, foreground)
}

#[cfg(test)]
mod tests {
    use super::super::grid::LineHalf;
    use super::super::scenes::{Form, scenes};
    use super::*;

    fn row(scene: &Scene, law: &str, seed: u64, figures: Figures) -> CellRow {
        CellRow {
            commit: String::new(),
            program: String::new(),
            cell: String::new(),
            line: scene.line.to_string(),
            half: LineHalf::Tune,
            foreground: scene.foreground.name().to_owned(),
            transfers: scene.transfers,
            among: scene.among.to_string(),
            law: law.to_owned(),
            seed,
            figures,
            trace: String::new(),
            packets: 0,
            seconds: 0.0,
            cpu_seconds: 0.0,
        }
    }

    fn harmed(median: f64, p90: Option<f64>, share: f64) -> Figures {
        Figures { median: Some(median), p90, share: Some(share), ..Figures::default() }
    }

    fn found<'a>(judged: &'a [BoundResult], id: &str) -> &'a BoundResult {
        judged.iter().find(|judged| judged.id == id).expect("a bound")
    }

    #[test]
    fn a_bound_is_held_against_the_median_of_seeds() {
        let scenes = scenes(Form::Full);
        let scene =
            scenes.iter().find(|scene| scene.to_string() == "10m-20ms-50p/requests/1").expect("a scene");
        let judged = |p90: [Option<f64>; 3]| {
            let rows: Vec<CellRow> = (1..)
                .zip(p90)
                .map(|(seed, p90)| row(scene, PRODUCT_LAW, seed, harmed(1.254, p90, 0.85)))
                .collect();
            judge(&Board::new(&scenes, &rows), LineSet::Grid, PRODUCT_LAW)
        };
        // 1.254 is printed as 1.25.
        let held = judged([Some(1.3), Some(1.4), None]);
        assert_eq!(
            (found(&held, "one-7").figures, found(&held, "one-7").missed.as_slice()),
            (3, [].as_slice())
        );
        let missed = judged([Some(1.3), None, Some(1.41)]);
        let [miss] = found(&missed, "one-7").missed.as_slice() else { panic!("{missed:?}") };
        assert_eq!(
            (miss.scene.as_str(), miss.figure, miss.value, miss.limit),
            ("10m-20ms-50p/requests/1", "p90", 1.41, 1.4)
        );
        let never = judged([None, None, Some(1.0)]);
        assert_eq!(found(&never, "one-7").missed[0].value, f64::INFINITY);
        assert!(never.iter().all(|judged| judged.id != "fill"), "nothing was measured");
    }

    #[test]
    fn the_product_is_compared_with_cubic_and_with_whoever_is_better_in_both() {
        let all = scenes(Form::Full);
        let waiting: Vec<&Scene> = all.iter().filter(|scene| scene.foreground.waits()).take(20).collect();
        let judged = |worse: usize, better: usize| {
            let mut rows = Vec::new();
            for (place, scene) in waiting.iter().enumerate() {
                let cubic = if place < worse { 1.2 } else { 5.0 };
                rows.push(row(scene, PRODUCT_LAW, 1, harmed(1.1, Some(1.3), 0.8)));
                rows.push(row(scene, "cubic", 1, harmed(1.1, Some(cubic), 0.7)));
                let rival = if place < better { 0.9 } else { 0.81 };
                rows.push(row(scene, "nice", 1, harmed(1.0, Some(1.1), rival)));
            }
            judge(&Board::new(&all, &rows), LineSet::Grid, PRODUCT_LAW)
        };
        let good = judged(0, 2);
        assert!(found(&good, "cubic").missed.is_empty() && found(&good, "undominated").missed.is_empty());
        assert_eq!((found(&good, "cubic").figures, found(&good, "undominated").figures), (40, 20));
        let bad = judged(1, 3);
        assert_eq!(found(&bad, "cubic").missed.len(), 1);
        assert!((found(&bad, "undominated").missed[0].value - 0.85).abs() < 1e-9);
    }

    #[test]
    fn bounds_and_known_misses_are_about_something() {
        let all = [LineSet::Grid, LineSet::Jitter].map(|lines| (lines.scenes(Form::Full), bounds_of(lines)));
        let ids: Vec<&str> = all.iter().flat_map(|(_, bounds)| bounds.iter().map(|bound| bound.id)).collect();
        for (scenes, bounds) in &all {
            for bound in *bounds {
                assert!(scenes.iter().any(bound.of), "{}", bound.id);
                assert_eq!(ids.iter().filter(|id| **id == bound.id).count(), 1, "{}", bound.id);
            }
        }
        for known in KNOWN_FAILURES.iter().chain(KNOWN_FULL_FAILURES).chain(KNOWN_JITTER_FAILURES) {
            let whole = ["cubic", "undominated"].contains(&known.bound);
            let applies = all.iter().any(|(scenes, bounds)| {
                let of = bounds.iter().find(|bound| bound.id == known.bound);
                let mut there = scenes.iter().filter(|scene| scene.to_string().starts_with(known.scene));
                there.any(|scene| of.is_some_and(|bound| (bound.of)(scene)) || whole)
            });
            assert!(applies, "{} in {}", known.bound, known.scene);
        }
    }

    #[test]
    fn a_miss_for_a_known_reason_fails_only_if_it_is_worse_than_accepted() {
        let miss = |known| BoundMiss { scene: String::new(), figure: "p90", value: 2.0, limit: 1.0, known };
        let known = |acceptance| miss(Some(KnownMiss { reason: "why", acceptance }));
        let judged = |missed| BoundResult { id: "", says: "", figures: 2, missed };
        assert!(judged(vec![]).holds() && judged(vec![known(Acceptance::Alike)]).holds());
        assert!(judged(vec![known(Acceptance::Better(3.0))]).holds());
        assert!(!judged(vec![known(Acceptance::Worse(1.5))]).holds());
        assert!(!judged(vec![known(Acceptance::Missing)]).holds());
        assert!(!judged(vec![known(Acceptance::Alike), miss(None)]).holds());
    }
}
