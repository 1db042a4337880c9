//! Deleting where disks end, and beside rsync.

use crate::common::{Cut, MIRROR, PLAIN, same, transfer, untouched};
use byway_files::{Reason, TRASH_DIRECTORY, compare};
use libtest_mimic::Failed;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

/// No directory can be made in the trash. All stays, and is named.
pub fn without_inodes(disk: &Path) {
    let from = tempfile::tempdir().unwrap();
    let (tree, copy) = (from.path().join("tree"), disk.join("in/tree"));
    fs::create_dir_all(&tree).unwrap();
    fs::create_dir_all(copy.join("d")).unwrap();
    fs::write(tree.join("a"), "a").unwrap();
    for file in ["a", "b", "d/c"] {
        fs::write(copy.join(file), "mine").unwrap();
    }
    // Two stay for the unfinished files of the transfer.
    let filled = (0..).take_while(|number| fs::write(disk.join(format!("fill{number}")), "").is_ok()).count();
    (0..3).for_each(|number| fs::remove_file(disk.join(format!("fill{}", filled - 1 - number))).unwrap());
    let outcome = transfer(std::slice::from_ref(&tree), &disk.join("in"), MIRROR, &mut untouched);
    let stayed = ["b", "d"].map(|name| (format!("tree/{name}"), Reason::NotDeleted));
    assert_eq!((outcome.deleted, outcome.stayed), (0, stayed.to_vec()));
    assert_eq!(fs::read(copy.join("d/c")).unwrap(), b"mine");
    (0..20).for_each(|number| fs::remove_file(disk.join(format!("fill{number}"))).unwrap());
    let outcome = transfer(std::slice::from_ref(&tree), &disk.join("in"), MIRROR, &mut untouched);
    assert_eq!((outcome.deleted, outcome.stayed.len()), (3, 0));
    same(&tree, &copy);
}

/// What is mounted in the receiver's tree stays, and the directories that lead there.
pub fn over_mounts(disk: &Path) {
    let from = tempfile::tempdir().unwrap();
    let (tree, into) = (from.path().join("tree"), disk.join("in"));
    fs::create_dir_all(&tree).unwrap();
    fs::write(tree.join("a"), "a").unwrap();
    for directory in ["tree/gone/other", "tree/gone/same", "tree/file", "elsewhere"] {
        fs::create_dir_all(into.join(directory)).unwrap();
    }
    let mount = |arguments: &[&str], at: &Path| {
        assert!(Command::new("mount").args(arguments).arg(at).status().unwrap().success());
    };
    mount(&["-t", "tmpfs", "none"], &into.join("tree/gone/other"));
    let elsewhere = into.join("elsewhere").display().to_string();
    // The same file system, mounted once more.
    mount(&["--bind", &elsewhere], &into.join("tree/gone/same"));
    for file in ["tree/gone/other/x", "elsewhere/y", "tree/gone/z"] {
        fs::write(into.join(file), "mine").unwrap();
    }
    let outcome = transfer(&[tree], &into, MIRROR, &mut untouched);
    let mut stayed = outcome.stayed;
    stayed.sort();
    let named = ["other", "same"].map(|name| (format!("tree/gone/{name}"), Reason::NotDeleted));
    assert_eq!(stayed, named);
    assert_eq!(outcome.deleted, 2, "a file, and a directory beside");
    for file in ["tree/gone/other/x", "elsewhere/y", "tree/gone/same/y"] {
        assert_eq!(fs::read(into.join(file)).unwrap(), b"mine");
    }
}

/// A directory and a file that the sender may not read: the receiver keeps what it has of them.
pub fn unreadable() -> Result<(), Failed> {
    let (from, into) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let tree = from.path().join("tree");
    fs::create_dir_all(tree.join("closed/deep"))?;
    for file in ["closed/deep/a", "closed/b", "secret", "old"] {
        fs::write(tree.join(file), "mine")?;
    }
    transfer(std::slice::from_ref(&tree), into.path(), PLAIN, &mut untouched);
    fs::remove_file(tree.join("old"))?;
    fs::set_permissions(tree.join("closed"), Permissions::from_mode(0o000))?;
    fs::set_permissions(tree.join("secret"), Permissions::from_mode(0o000))?;
    let outcome = transfer(std::slice::from_ref(&tree), into.path(), MIRROR, &mut untouched);
    fs::set_permissions(tree.join("closed"), Permissions::from_mode(0o700))?;
    fs::set_permissions(into.path().join("tree/closed"), Permissions::from_mode(0o700))?;
    // What seems to be gone may be what could not be read, under its new name.
    assert_eq!((outcome.deleted, outcome.unsent), (0, 2));
    for file in ["closed/deep/a", "closed/b", "secret", "old"] {
        assert_eq!(fs::read(into.path().join("tree").join(file))?, b"mine");
    }
    // A directory of the receiver that it may not change keeps what is in it.
    fs::remove_file(tree.join("closed/b"))?;
    fs::set_permissions(tree.join("secret"), Permissions::from_mode(0o600))?;
    fs::set_permissions(into.path().join("tree/closed"), Permissions::from_mode(0o500))?;
    let outcome = transfer(std::slice::from_ref(&tree), into.path(), MIRROR, &mut untouched);
    assert_eq!(outcome.stayed, [("tree/closed/b".to_owned(), Reason::NotDeleted)]);
    // It goes as a whole, and stays as closed as it was.
    fs::remove_dir_all(tree.join("closed"))?;
    fs::set_permissions(into.path().join("tree/closed"), Permissions::from_mode(0o500))?;
    let outcome = transfer(&[tree], into.path(), MIRROR, &mut untouched);
    assert_eq!(outcome.stayed, []);
    // The move that failed has left a folder of its own, which is empty.
    let trash = fs::read_dir(into.path().join(TRASH_DIRECTORY))?;
    let found =
        trash.flatten().map(|folder| folder.path().join("tree/closed")).find(|it| it.join("b").exists());
    let found = found.ok_or("it is not in the trash")?;
    assert_eq!(found.metadata()?.permissions().mode() & 0o777, 0o500);
    fs::set_permissions(found, Permissions::from_mode(0o700))?;
    Ok(())
}

/// Two trees of few names are drawn from a seed. One is sent over copies of the other by rsync and
/// by byway, and both copies are the same then.
pub fn as_rsync_does() -> Result<(), Failed> {
    const EXCLUDED: &[&str] = &["*.o", "cache", "log*"];
    let mut compared = 0;
    for seed in 1..=40 {
        let place = tempfile::tempdir()?;
        let at = |name: &str| place.path().join(name);
        let mut draws = Draws(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
        draw_tree(&at("from/tree"), 3, &mut draws)?;
        draw_tree(&at("rsync/tree"), 3, &mut draws)?;
        fs::write(at("from/tree/never-empty"), "x")?;
        let copied = Command::new("cp").arg("-a").arg(at("rsync")).arg(at("byway")).status()?;
        assert!(copied.success());
        let mut command = Command::new("rsync");
        command.args(["-a", "--delete"]).args(EXCLUDED.iter().map(|pattern| format!("--exclude={pattern}")));
        let output = command.arg(at("from/tree")).arg(at("rsync/")).output()?;
        // 23: something stands in the way, and holds what is excluded. byway deletes nothing then.
        if output.status.code() == Some(23) {
            continue;
        }
        assert!(output.status.success(), "{output:?}");
        compared += 1;
        let cut = Cut { excluded: EXCLUDED, ..MIRROR };
        transfer(&[at("from/tree")], &at("byway"), cut, &mut untouched);
        let mut differences = compare(&at("rsync/tree"), &at("byway/tree"))?;
        // rsync looks at whole seconds, and a directory that only what is excluded holds has the
        // time of what was deleted in it.
        let is_file =
            |path: &Path| at("byway/tree").join(path).symlink_metadata().is_ok_and(|it| it.is_file());
        differences.retain(|it| !it.what.contains("time") || is_file(&it.path));
        assert_eq!(differences, [], "seed {seed}");
    }
    assert!(compared > 20, "{compared}");
    Ok(())
}

struct Draws(u64);

impl Draws {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end
    }
}

fn draw_tree(top: &Path, depth: usize, draws: &mut Draws) -> Result<(), Failed> {
    const NAMES: [&str; 9] = ["a", "a.c", "a.o", "b", "b.d", "cache", "log", "log1", "z"];
    fs::create_dir_all(top)?;
    for _ in 0..draws.below(7) {
        let path = top.join(NAMES[draws.below(NAMES.len())]);
        if path.symlink_metadata().is_ok() {
            continue;
        }
        match draws.below(5) {
            0 | 1 if depth > 0 => draw_tree(&path, depth - 1, draws)?,
            2 => symlink(NAMES[draws.below(NAMES.len())], path)?,
            _ => {
                fs::write(&path, "x".repeat(1 + draws.below(3)))?;
                let age = std::time::Duration::from_secs(1_000_000 + 10 * draws.below(2) as u64);
                fs::File::options().write(true).open(&path)?.set_modified(std::time::UNIX_EPOCH + age)?;
            }
        }
    }
    Ok(())
}
