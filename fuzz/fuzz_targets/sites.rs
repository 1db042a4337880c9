//! Configurations of gateways: a text is read, or refused at a line that it has; of what is read it can be said what it would do.
#![no_main]

use byway::gateway::check::Report;
use byway::gateway::config::GatewayConfig;
use libfuzzer_sys::fuzz_target;
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if text.contains('@') {
        return; // a file that it names
    }
    match GatewayConfig::parse(Path::new("gw.toml"), text) {
        Ok(config) => {
            let report = Report::of(&config);
            assert_eq!(report.rules.len(), config.rules.rules.len() + 1);
            assert!(!report.to_string().is_empty());
        }
        Err(error) => assert!(error.to_string().starts_with("gw.toml")),
    }
});
