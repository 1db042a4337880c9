//! Backups over `byway forward`, as `docs/backup.md` has them. Each of two hosts has an empty home
//! directory and runs only what stands there.
//!
//! Needs root, and the programs of the page.

pub mod homes;

use crate::common::bench::BYWAY;
use crate::common::machine::{Measured, measures, missing, must, test, works};
use crate::common::pages::{self, Block};
use crate::common::spaces::Spaces;
use crate::forward::services::Services;
use homes::{HOME, Homes, NAS};
use libtest_mimic::{Failed, Trial};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What a block of the page begins with whose lines run on the NAS.
const ON_THE_NAS: &str = "# on the NAS";

pub fn tests() -> Vec<Trial> {
    let programs = [
        "restic version",
        "borg --version",
        "rclone version",
        "rsync --version",
        "git --version",
        "psql --version",
        "ssh -V",
    ];
    let possible =
        Spaces::possible(&["ss -V"]) && programs.into_iter().all(works) && Services::are_possible();
    let lacks = missing(
        possible,
        "it needs root, the programs ip, ss, restic, borg, rclone, rsync, git, ssh and sshd, and a PostgreSQL",
    );
    vec![
        test("backup::the_page_backs_up_by_each_tool", lacks, page),
        measures("backup::others_hardly_notice_restic_over_byway", lacks, restic),
    ]
}

/// Seconds that a backup takes on the idle line.
const BACKUP_SECONDS: &str = "8";
/// How much longer requests may take beside restic over byway: their median and their p90.
const MAX_WAITS: [f64; 2] = [1.4, 2.2];
/// How much longer their median takes at least beside restic alone: the line is the bottleneck.
const MIN_PLAIN_WAIT: f64 = 1.4;
/// How much longer the backup may take over byway, on an idle line and beside requests.
const MAX_TIMES: [f64; 2] = [1.3, 1.9];

/// One row of the bench: 10 Mbit/s, 20 ms and 50 packets of queue.
fn restic() -> Measured {
    let bench = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/backup.py");
    for last in [false, true] {
        let mut bench = Command::new(&bench);
        bench.args([BYWAY, "--quick", "--tool", "restic", "--json", "--seconds", BACKUP_SECONDS]);
        let told: Value = serde_json::from_str(&must(&mut bench))?;
        let result = &told["result"];
        if result.is_null() {
            return Ok(None);
        }
        let waits =
            |way: &str, at: usize| result[way][at].as_f64().unwrap() / result["alone"][at].as_f64().unwrap();
        let longer = |run: &str| {
            let [byway, plain] =
                ["byway", "plain"].map(|way| result[format!("{run} {way}")].as_f64().unwrap());
            byway / plain
        };
        let (waited, plain) = ([0, 1].map(|at| waits("byway", at)), waits("plain", 0));
        let times = ["idle", "beside"].map(longer);
        println!(
            "requests take {waited:.2?} times as long, beside restic alone {plain:.2}; it takes {times:.2?}"
        );
        let within = |values: [f64; 2], limits: [f64; 2]| {
            values.iter().zip(limits).all(|(value, limit)| *value <= limit)
        };
        if within(waited, MAX_WAITS) && within(times, MAX_TIMES) && plain >= MIN_PLAIN_WAIT {
            return Ok(Some(()));
        }
        assert!(!last, "{told}");
    }
    Ok(None)
}

/// Lines that need a systemd.
fn needs_systemd(line: &str) -> bool {
    ["systemctl --user ", "loginctl "].iter().any(|program| line.starts_with(program))
}

fn page() -> Result<(), Failed> {
    let spaces = homes::hosts("b");
    let mut homes = Homes::new(&spaces);
    let page = pages::all().into_iter().find(|page| page.name == pages::BACKUP).expect("the page");
    for (name, block) in page.files().filter(|(name, _)| !name.starts_with("backup")) {
        for host in [HOME, NAS] {
            fs::write(homes.home(host).join(name), &block.text)?;
        }
    }
    fs::create_dir(homes.srv(NAS).join("backup"))?;
    homes.run(
        HOME,
        "git init -q site && cd site && echo '<p>' > index.html && git add . && \
         git -c user.name=n -c user.email=n@example.org commit -qm one",
    );
    let database = Services::database(&spaces, HOME);
    for block in page.blocks.iter().filter(|block| block.language == "sh") {
        let host = if block.text.starts_with(ON_THE_NAS) { NAS } else { HOME };
        for line in block.text.lines().filter(|line| !line.starts_with('#') && !needs_systemd(line)) {
            homes.types(host, line);
        }
    }
    for (_, block) in page.files().filter(|(name, _)| name.ends_with(".service")) {
        for line in commands(block) {
            homes.types(HOME, &line);
        }
    }
    check(&homes);
    drop(database);
    Ok(())
}

/// The commands of a unit, as a shell would run them.
fn commands(unit: &Block) -> Vec<String> {
    let value = |line: &str, name: &str| line.strip_prefix(name).map(|value| value.replace("%h", "~"));
    let environment: String =
        unit.text.lines().filter_map(|line| value(line, "Environment=")).map(|pair| pair + " ").collect();
    let commands = unit.text.lines().filter_map(|line| value(line, "ExecStart="));
    let commands: Vec<String> = commands.map(|command| environment.clone() + &command).collect();
    assert!(!commands.is_empty(), "{}", unit.text);
    commands
}

/// The NAS has what the home has.
fn check(homes: &Homes<'_>) {
    homes.same("photos", homes.home(HOME).join("restored/root/photos"));
    homes.same("photos", homes.home(NAS).join("backup/photos"));
    homes.same("photos", homes.srv(NAS).join("backup/daily/photos"));
    // Neither rclone nor tar copies all times, and rclone spells some names otherwise.
    homes.run(NAS, "mkdir unpacked && tar xzf backup/photos.tar.gz -C unpacked");
    let sums = |host: &str, tree: &str| {
        homes.run(host, &format!("cd {tree} && find . -type f -exec sha256sum {{}} + | cut -c -64 | sort"))
    };
    for copy in ["backup/rclone", "unpacked/photos"] {
        assert_eq!(sums(HOME, "photos"), sums(NAS, copy), "{copy}");
    }
    let here = homes.run(HOME, "git -C site rev-parse HEAD");
    assert_eq!(here, homes.run(NAS, "git --git-dir backup/site.git rev-parse HEAD"));
    let rows = homes.run(NAS, "pg_restore -f - backup/shop.dump").lines().count();
    assert!(rows > 60_000, "{rows} lines of a dump");
    fs::copy(homes.home(HOME).join(".restic-password"), homes.home(NAS).join(".restic-password")).unwrap();
    for (repository, backups) in [("restic", 1..=2), ("rest/photos", 1..=1)] {
        let restic = format!("restic -r backup/{repository} -p .restic-password");
        let told = homes.run(NAS, &format!("{restic} snapshots --json"));
        let told: Value = serde_json::from_str(&told).unwrap();
        assert!(backups.contains(&told.as_array().unwrap().len()), "{repository}: {told}");
        homes.run(NAS, &format!("{restic} check --read-data"));
    }
    assert_eq!(homes.run(HOME, "borg list --short nas:backup/borg").lines().count(), 1);
}
