//! Controllers of others, to compare byway's own with: plans, the scoreboard of background laws and
//! `lab harm` name them.

pub mod bbr;
pub mod bbr3;
pub mod cubic;
pub mod hystart_linux;
pub mod ledbat;
pub mod ledbat_pp;
pub mod lia;
mod max_filter;
pub mod nice;
pub mod proteus;
pub mod tcp_lp;
