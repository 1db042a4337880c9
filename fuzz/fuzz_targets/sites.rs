//! Configurations of gateways: a text is read, or refused at a line that it has; of what is read it
//! can be said what it would do.
#![no_main]

use byway_cli::gateway::check::CheckReport;
use byway_cli::gateway::config_file::GatewayConfig;
use byway_gateway::loss::LossRuleKind;
use byway_gateway::machine::Bundle;
use libfuzzer_sys::fuzz_target;
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if text.contains('@') {
        return; // a file that it names
    }
    match GatewayConfig::parse(Path::new("gw.toml"), text) {
        Ok(config) => {
            let report = CheckReport::of(&config);
            assert_eq!(report.rules.len(), config.rules.rules.len() + 1);
            assert!(!report.to_string().is_empty());
            // What differs from the usual is told, and bounded.
            let told = |part: &str| report.gateway.iter().any(|line| line.contains(part));
            assert_eq!(told("Losses are found"), config.settings.loss != LossRuleKind::PathNumbers);
            assert_eq!(told("It keeps what it sends"), config.settings.cache.is_some());
            assert_eq!(told("a bundle of paths of its own"), config.settings.bundle == Bundle::Flow);
            assert!(config.settings.cache.is_none_or(|cache| cache.flow_bytes <= cache.bytes));
        }
        Err(error) => assert!(error.to_string().starts_with("gw.toml")),
    }
});
