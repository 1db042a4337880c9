//! `[[gateways]]`: who carries the flows of hosts, and how.

use super::shared_keys::{congestion, name, pair, ways, when};
use super::table_reader::{Reader, SpannedError};
use crate::setup::{Gateways, PathChoice};
use byway_control::SenderKind;
use byway_gateway::cache;
use byway_gateway::loss::LossRuleKind;
use byway_gateway::machine::{Bundle, Settings};
use byway_gateway::path_selection::{Policy, RelayPreference};
use byway_gateway::receive_window;
use byway_gateway::reorder::Timer;

pub(super) fn all(reader: &Reader<'_>) -> Result<Vec<Gateways>, SpannedError> {
    let all = reader.each("gateways", |reader| Ok(when(reader)?.then_some(gateways(reader)?)))?;
    Ok(all.into_iter().flatten().collect())
}

/// Returns the gateways that carry a transfer: those that the transfer names, or the only ones in
/// the plan.
pub(super) fn of(reader: &Reader<'_>, known: &[Gateways]) -> Result<String, SpannedError> {
    let named = reader.text("gateways")?;
    match (&named, known) {
        (Some(named), _) if known.iter().any(|gateways| gateways.name == *named) => Ok(named.clone()),
        (None, [only]) => Ok(only.name.clone()),
        _ => reader.wrong("gateways", "expected the name of [[gateways]], or a plan with only one of them"),
    }
}

fn gateways(reader: &Reader<'_>) -> Result<Gateways, SpannedError> {
    let between = reader.needed("between", "two nodes such as [\"A\", \"B\"]", pair(reader, "between")?)?;
    let paths = ways(reader)?;
    let only_known = paths.iter().all(|way| matches!(way, PathChoice::Direct | PathChoice::Through(_)));
    if !only_known || !paths.contains(&PathChoice::Direct) {
        return reader.wrong("paths", "gateways need \"direct\" among their ways, and the others by name");
    }
    let congestion = congestion(reader, "background")?;
    if let Err(error) = byway_control::controller(&congestion, SenderKind::Session, 0) {
        return reader.wrong("congestion", error.to_string());
    }
    Ok(Gateways { name: name(reader, "name")?, between, paths, congestion, settings: settings(reader)? })
}

fn settings(reader: &Reader<'_>) -> Result<Settings, SpannedError> {
    let mut settings = Settings::default();
    if let Some(headroom) = reader.share("headroom")? {
        settings.headroom_percent = libm::round(headroom * 100.0) as u32;
    }
    match reader.text("choice")?.as_deref() {
        None | Some("waiting") => {}
        Some("literal") => settings.policy = Policy::LITERAL,
        Some(other) => {
            return reader.wrong("choice", format!("expected waiting or literal, found {other:?}"));
        }
    }
    named(reader, "loss", &mut settings.loss, &LossRuleKind::ALL, LossRuleKind::name)?;
    named(reader, "window", &mut settings.window, &receive_window::ALL_WINDOW_RULES, receive_window::name)?;
    named(reader, "relays", &mut settings.policy.relays, &RelayPreference::ALL, RelayPreference::name)?;
    named(reader, "bundle", &mut settings.bundle, &Bundle::ALL, Bundle::name)?;
    if let Some(timer) = reader.table("timer", timer)? {
        settings.timer = timer;
    }
    settings.cache = reader.truth("cache")?.unwrap_or(false).then(cache::CacheLimits::default);
    if let Some(bytes) = reader.size("entry")? {
        settings.entry.flow_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        settings.entry.bytes = settings.entry.bytes.max(settings.entry.flow_bytes);
    }
    Ok(settings)
}

/// Sets `place` to the element of `all` that `key` names, if the key is there.
fn named<T: Copy>(
    reader: &Reader<'_>,
    key: &str,
    place: &mut T,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<(), SpannedError> {
    let Some(told) = reader.text(key)? else { return Ok(()) };
    if let Some(one) = all.iter().copied().find(|one| name(*one) == told) {
        *place = one;
        return Ok(());
    }
    let names: Vec<&str> = all.iter().map(|one| name(*one)).collect();
    let (last, most) = names.split_last().unwrap_or((&"", &[]));
    reader.wrong(key, format!("expected {} or {last}, found {told:?}", most.join(", ")))
}

fn timer(reader: &Reader<'_>) -> Result<Timer, SpannedError> {
    let (factor, threshold) = (reader.number("rho")?, reader.time("cap")?);
    let known = "harp, harp-relative, hir, hir-relative or peak";
    let rule = reader.needed("rule", known, reader.text("rule")?)?;
    let Some(mut timer) = Timer::named(&rule) else {
        return reader.wrong("rule", format!("expected {known}"));
    };
    match &mut timer {
        Timer::Harp { rho } | Timer::HarpRelative { rho } => *rho = factor.unwrap_or(*rho),
        Timer::Hir { cap } | Timer::HirRelative { cap } | Timer::Peak { cap } => {
            *cap = threshold.unwrap_or(*cap);
        }
    }
    Ok(timer)
}
