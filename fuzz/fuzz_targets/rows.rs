//! Rows and tasks of sweeps, as other machines and schedulers hand them over.
#![no_main]

use byway_lab::measure::{Records, SharedTexts};
use byway_lab::plan::SeedChoice;
use byway_lab::sweep::{Part, Row, SweepTask};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let mut texts = SharedTexts::default();
    let rows: Vec<_> = text.lines().filter_map(|line| Row::read(line, &mut texts).ok()).collect();
    let answers: Vec<_> = rows.into_iter().map(|row| row.answers).collect();
    if let Ok(records) = Records::of_answers(&answers) {
        assert!(records.variants().count() <= answers.len());
    }
    if let Ok(task) = text.parse::<SweepTask>() {
        assert_eq!(task.to_string().parse(), Ok(task.clone()));
        assert!(!task.seeds.is_empty() && !task.file_name().contains('/'));
    }
    if let Ok(part) = text.parse::<Part>() {
        assert!((0..4).filter(|&place| part.takes(place)).count() <= 4);
    }
    let _ = text.parse::<SeedChoice>();
});
