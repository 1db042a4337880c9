//! Putting a plan into the kernel by the programs `nft` and `ip`, and taking it out again.

use super::error::{PlumbingError, Result};
use byway_gateway::kernel::{Family, KernelPlan, MARK_MASK, ROUTE_PROTOCOL, selector};
use serde_json::Value;
use std::io::{self, Write as _};
use std::process::{Command, Stdio};

/// Directories of programs besides those of this process's `PATH`, which often lacks them for users
/// other than root.
const SYSTEM_PATHS: &str = "/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin";

/// A gateway's state in the kernel: present, or left by a killed gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelState {
    /// Whether the nftables table exists.
    pub table: bool,
    /// Rules of routing, by version of IP.
    pub rules: Vec<(Family, usize)>,
    /// Routes, by version of IP.
    pub routes: Vec<(Family, usize)>,
}

impl KernelState {
    /// Whether there is no state.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.table && self.rules.iter().chain(&self.routes).all(|(_, count)| *count == 0)
    }
}

/// The kernel state that exists for `plan`: the nftables table, the routing rules for packets with
/// the mark `plan.mark`, and the routes in the routing table that has the mark as its number.
///
/// # Errors
/// `nft` or `ip` fails, or another program uses the routing table.
pub fn installed(plan: &KernelPlan) -> Result<KernelState> {
    let mut found = KernelState { table: has_table(&plan.table)?, ..KernelState::default() };
    for family in [Family::V4, Family::V6] {
        found.rules.push((family, rules(family, plan.mark)?));
        found.routes.push((family, routes(family, plan.mark)?));
    }
    Ok(found)
}

/// Installs `plan` in place of an earlier gateway's leftovers. The TUN device must exist and be up.
///
/// # Errors
/// As [`installed`]. After an error, nothing of the plan stays installed.
pub fn install(plan: &KernelPlan) -> Result<()> {
    remove(plan)?;
    let steps = || {
        for (family, commands) in &plan.routing {
            ip(&[family.flag(), "-batch", "-"], commands)?;
        }
        // Last, because a packet that these rules mark needs the route into the device.
        nft(&["-f", "-"], &plan.ruleset).map(drop)
    };
    steps().inspect_err(|_| {
        // What went wrong first is what is told.
        let _ = remove(plan);
    })
}

/// Replaces the nftables rules by those of `plan`, in one transaction. The routes stay, so
/// [`KernelPlan::routing`] must be the same as in the installed plan.
///
/// # Errors
/// `nft` is missing or fails. The installed rules then stay.
pub fn reload(plan: &KernelPlan) -> Result<()> {
    nft(&["-f", "-"], &plan.ruleset).map(drop)
}

/// Removes whatever of the plan is in the kernel. It does not matter if nothing is.
///
/// # Errors
/// As [`installed`].
pub fn remove(plan: &KernelPlan) -> Result<()> {
    let found = installed(plan)?;
    if found.table {
        nft(&["delete", "table", "inet", &plan.table], "")?;
    }
    let mark = plan.mark.to_string();
    for (family, count) in found.rules {
        ip(&[family.flag(), "-batch", "-"], &format!("rule del {}\n", selector(plan.mark)).repeat(count))?;
    }
    for (family, count) in found.routes {
        if count > 0 {
            ip(&[family.flag(), "route", "flush", "table", &mark], "")?;
        }
    }
    Ok(())
}

fn has_table(table: &str) -> Result<bool> {
    let tables = nft(&["-j", "list", "tables"], "")?;
    let tables: Value = serde_json::from_str(&tables).map_err(not_json("nft"))?;
    let ours = |entry: &Value| entry["table"]["family"] == "inet" && entry["table"]["name"] == table;
    Ok(tables["nftables"].as_array().is_some_and(|tables| tables.iter().any(ours)))
}

/// Our rules of routing.
fn rules(family: Family, mark: u16) -> Result<usize> {
    let listed = listed(family, &["rule", "list", "priority", &mark.to_string()])?;
    let number = |value: &Value| value.as_str().and_then(|text| text.parse::<u32>().ok());
    let ours = |rule: &&Value| {
        number(&rule["protocol"]) == Some(ROUTE_PROTOCOL.into())
            && number(&rule["table"]) == Some(mark.into())
            && rule["fwmark"] == format!("{mark:#x}")
            && rule["fwmask"] == format!("{MARK_MASK:#x}")
    };
    Ok(listed.iter().filter(ours).count())
}

/// Returns the number of byway's routes in its own table for a family. An error: the table has
/// other routes.
fn routes(family: Family, mark: u16) -> Result<usize> {
    let listed = listed(family, &["route", "show", "table", &mark.to_string()])?;
    let protocol = ROUTE_PROTOCOL.to_string();
    if let Some(other) = listed.iter().find(|route| route["protocol"] != protocol.as_str()) {
        let to = other["dst"].as_str();
        let route = to.map(|to| format!(" for a route to {to}")).unwrap_or_default();
        return Err(PlumbingError::TableInUse { table: mark, route });
    }
    Ok(listed.len())
}

fn listed(family: Family, what: &[&str]) -> Result<Vec<Value>> {
    let arguments = [&["-j", family.flag()], what].concat();
    let output = run("ip", &arguments, "")?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        // A routing table without a route does not exist; a host may do without IPv6.
        if text.contains("does not exist") || text.contains("not supported") {
            return Ok(Vec::new());
        }
        return Err(refused("ip", &text));
    }
    let text = output.stdout.trim_ascii();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    serde_json::from_slice(text).map_err(not_json("ip"))
}

fn ip(arguments: &[&str], input: &str) -> Result<String> {
    done("ip", run("ip", arguments, input)?)
}

fn nft(arguments: &[&str], input: &str) -> Result<String> {
    done("nft", run("nft", arguments, input)?)
}

fn done(program: &'static str, output: std::process::Output) -> Result<String> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(refused(program, &String::from_utf8_lossy(&output.stderr)))
}

/// The error for a program whose output is no JSON.
fn not_json(program: &'static str) -> impl FnOnce(serde_json::Error) -> PlumbingError {
    move |source| PlumbingError::NotJson { program, source }
}

/// The error for the output of a failed program.
fn refused(program: &'static str, told: &str) -> PlumbingError {
    if told.contains("Operation not permitted") || told.contains("must be root") {
        return PlumbingError::NoPrivilege;
    }
    let first = told.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("it gives no reason");
    let first = first.trim_start_matches("RTNETLINK answers: ").trim_start_matches("Error: ");
    PlumbingError::Refused { program, reason: first.to_owned() }
}

/// An error if a required program is missing.
///
/// # Errors
/// As said; a failure with what to do.
pub fn present(program: &'static str) -> Result<()> {
    run(program, &["-V"], "").map(drop)
}

/// The package that contains a program.
fn package(program: &str) -> &'static str {
    if program == "nft" { "nftables" } else { "iproute2" }
}

/// Runs a program with `input` as its standard input, and waits for its end.
fn run(program: &'static str, arguments: &[&str], input: &str) -> Result<std::process::Output> {
    let path = std::env::var("PATH")
        .map_or_else(|_| SYSTEM_PATHS.to_owned(), |path| format!("{path}:{SYSTEM_PATHS}"));
    let mut command = Command::new(program);
    command.args(arguments).env("PATH", path).env("LC_ALL", "C");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let not_run = |source| PlumbingError::NotRun { program, source };
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => PlumbingError::Missing { program, package: package(program) },
        _ => not_run(error),
    })?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ends before it has read all says why itself.
        let _ = stdin.write_all(input.as_bytes());
    }
    child.wait_with_output().map_err(not_run)
}
