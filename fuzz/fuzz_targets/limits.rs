//! Limits as people write them, and what a process is asked on its status socket. A timetable has
//! one limit at each time of day, one of those that were written.
#![no_main]

use byway_transfer::host_status::{HistoryEntry, Request};
use byway_transfer::limits::rate_timetable::RateTimetable;
use byway_transfer::limits::time_of_day::LocalTime;
use libfuzzer_sys::fuzz_target;

const DAY_SECONDS: i64 = 86_400;

fuzz_target!(|text: &str| {
    if let Ok(timetable) = text.parse::<RateTimetable>() {
        let highest = timetable.highest();
        for second in (0..DAY_SECONDS).step_by(419) {
            let now = LocalTime::new(second);
            let limits = timetable.limits_at(now.time_of_day());
            assert!(limits.up.is_none_or(|up| up > 0) && limits.down.is_none_or(|down| down > 0));
            assert!(highest.up.is_none_or(|most| limits.up.is_some_and(|up| up <= most)));
            assert!(highest.down.is_none_or(|most| limits.down.is_some_and(|down| down <= most)));
            assert_eq!(timetable.until_change(now).is_some(), timetable.is_daily());
        }
    }
    if let Ok(request) = serde_json::from_str::<Request>(text) {
        let line = serde_json::to_string(&request).unwrap();
        assert_eq!(serde_json::from_str::<Request>(&line).unwrap(), request);
    }
    if let Ok(entry) = serde_json::from_str::<HistoryEntry>(text) {
        let line = serde_json::to_string(&entry).unwrap();
        assert!(!line.contains('\n'));
        assert!(serde_json::from_str::<HistoryEntry>(&line).is_ok());
    }
});
