//! The last list of relays from a registry, kept on disk for when the registry does not answer. The
//! file holds secrets, so only its owner may read it.
//!
//! ```text
//! format 1 (1), checksum (4), list
//! ```

use byway_registry::message::{MAX_ANSWER_LEN, RelayList};
use byway_registry::word::RegistryWord;
use byway_wire::checked_text::{CHECKSUM_LEN, checksum};
use byway_wire::{Reader, Writer};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The version of the file's format.
const FORMAT_VERSION: u8 = 1;

/// Returns the path of the saved list for a registry word.
pub fn path_of(directory: &Path, word: &RegistryWord) -> PathBuf {
    let name = blake3::hash(&[&word.key.0[..], &word.proof.number.to_be_bytes()].concat()).to_hex();
    directory.join(name.get(..32).unwrap_or_default())
}

/// Reads the stored list. `None`: there is none, or it is damaged or expired at `unix` (seconds).
pub fn read(path: &Path, unix: u64) -> Option<RelayList> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MAX_ANSWER_LEN as u64 + 64).read_to_end(&mut bytes).ok()?;
    let mut reader = Reader::new(&bytes);
    let (format, sum) = (reader.u8().ok()?, reader.array::<CHECKSUM_LEN>().ok()?);
    let rest = reader.clone().take_rest();
    if format != FORMAT_VERSION || checksum(&[rest]) != sum {
        return None;
    }
    let list = RelayList::read(&mut reader).ok()?;
    (reader.is_empty() && list.until > unix).then_some(list)
}

/// Writes a list, in place of the stored one.
pub fn write(path: &Path, list: &RelayList) -> io::Result<()> {
    let mut bytes = vec![0; MAX_ANSWER_LEN];
    let mut writer = Writer::new(&mut bytes);
    list.write(&mut writer);
    let list = writer.written();
    let bytes = [&[FORMAT_VERSION][..], &checksum(&[list]), list].concat();
    if let Some(directory) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    // Two senders may write at once: each whole, one after the other.
    let draft = path.with_extension(format!("{}", std::process::id()));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    file.write_all(&bytes).and_then(|()| std::fs::rename(&draft, path)).inspect_err(|_| {
        let _ = std::fs::remove_file(&draft);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_list_is_kept_whole_or_not_at_all() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("lists/one");
        assert_eq!(read(&path, 0), None);
        let list = RelayList { made: 1, until: 100, more: false, relays: Vec::new() };
        write(&path, &list).unwrap();
        assert_eq!((read(&path, 99), read(&path, 100)), (Some(list.clone()), None));
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        write(&path, &list).unwrap();
        assert_eq!(std::fs::read_dir(place.path().join("lists")).unwrap().count(), 1);
        let mut bytes = std::fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(read(&path, 0), None);
    }
}
