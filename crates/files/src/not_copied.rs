//! Counts of metadata that are not copied.

use rustix::fd::AsFd;
use rustix::fs::Stat;
use rustix::io::Errno;

/// The most bytes of attributes' names that are examined.
const MAX_NAMES_LEN: usize = 4_096;

/// Counts of entries with something that is not copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotCopied {
    /// Entries whose owner or group is not that of the sending process.
    pub owners: u64,
    /// Names of files that have other names, too.
    pub hard_links: u64,
    /// Files and directories with setuid or setgid bits.
    pub special_modes: u64,
    /// Directories, and files that were read, with access control lists.
    pub acls: u64,
    /// Directories, and files that were read, with other extended attributes.
    pub xattrs: u64,
}

impl NotCopied {
    /// Returns the sum of all counts. An entry may be in several of them.
    #[must_use]
    pub const fn sum(&self) -> u64 {
        self.owners + self.hard_links + self.special_modes + self.acls + self.xattrs
    }

    /// Counts an entry whose owner is not copied. `process`: the user and the group of the sender.
    pub(crate) fn note_owner(&mut self, stat: &Stat, process: (u32, u32)) {
        self.owners += u64::from((stat.st_uid, stat.st_gid) != process);
    }

    /// Adds the counts of attributes.
    pub(crate) const fn add_attributes(&mut self, other: Self) {
        self.acls += other.acls;
        self.xattrs += other.xattrs;
    }

    /// Notes the attributes of an open file or directory.
    pub(crate) fn note_attributes(&mut self, file: impl AsFd) {
        let mut names = [0_u8; MAX_NAMES_LEN];
        let names = match rustix::fs::flistxattr(file, &mut names) {
            Ok(length) => names.get(..length).unwrap_or_default(),
            Err(Errno::RANGE) => &b"many"[..],
            Err(_) => return,
        };
        let (mut has_acl, mut has_other) = (false, false);
        for name in names.split(|byte| *byte == 0) {
            match name {
                b"system.posix_acl_access" | b"system.posix_acl_default" | b"system.nfs4_acl" => {
                    has_acl = true
                }
                // Where SELinux runs, each file has one, by rules of the host.
                b"" | b"security.selinux" => {}
                _ => has_other = true,
            }
        }
        self.acls += u64::from(has_acl);
        self.xattrs += u64::from(has_other);
    }
}
