//! A page in the browser that shows what runs on this host: what each uplink carries, transfers
//! with their paths and why they are slow, and what ended in 30 days. It is served on loopback, and
//! only shows.
//!
//! | module | what it is |
//! |---|---|
//! | `told` | what processes tell on their status sockets, cut to what is shown |
//! | `track`, `ring` | what is remembered of a transfer: its last ten minutes |
//! | `uplinks`, `interfaces` | what the kernel counts, and which path uses which interface |
//! | `overview`, `frame` | all of these together, and what the page is told of it |
//! | `sampler` | asks all processes once a second, while somebody looks |
//! | `feed` | the newest frame for all who look |
//! | `visitor` | who may look |
//! | `pages` | what is answered over HTTP; the page's files are in `assets` |
//!
//! ```no_run
//! use byway_transfer::PauseReason;
//! use byway_transfer::host_status::{History, RuntimeDirectory};
//! use byway_view::{View, ViewPlan, Words};
//!
//! let view = View::serve(ViewPlan {
//!     listen: "127.0.0.1:0".parse()?,
//!     directories: Box::new(|| RuntimeDirectory::visible(1_000, |name| std::env::var_os(name))),
//!     history: History::at("history.jsonl".into()),
//!     has_failed: |entry| entry.result["exit"] != 0,
//!     words: Words { pause: PauseReason::code, pause_of_path: PauseReason::code },
//! })?;
//! println!("{}", view.url());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod browser;
mod feed;
mod frame;
mod interfaces;
mod messages;
mod overview;
mod pages;
mod past_transfers;
mod ring;
mod sampler;
mod told;
mod track;
mod uplinks;
mod visitor;

pub use browser::open_in_browser;
pub use messages::Words;
pub use sampler::Directories;

use byway_local_http::{LocalServer, ServeError, ServerLimits};
use byway_transfer::host_status::{History, HistoryEntry};
use feed::Feed;
use pages::Shown;
use sampler::{Sampler, Sampling};
use std::net::SocketAddr;
use std::sync::Arc;
use visitor::Visitors;

/// The address of the page, and the sources of its contents.
pub struct ViewPlan {
    /// A loopback address. Port 0: any that is free.
    pub listen: SocketAddr,
    /// The directories of the processes' status sockets.
    pub directories: Directories,
    /// The history of ended transfers.
    pub history: History,
    /// Whether a transfer failed, rather than being ended by a limit or a signal.
    pub has_failed: fn(&HistoryEntry) -> bool,
    /// The program's texts for reasons.
    pub words: Words,
}

/// A page that is served. It ends when this value is dropped.
pub struct View {
    server: LocalServer,
    visitors: Arc<Visitors>,
    _sampler: Sampler,
}

impl View {
    /// Serves the page.
    ///
    /// # Errors
    /// The address is no loopback address or is taken; the system gives no thread or no random
    /// bytes.
    pub fn serve(plan: ViewPlan) -> Result<Self, ServeError> {
        let failed = |source| ServeError::Io { address: plan.listen, source };
        let visitors = Arc::new(Visitors::new().map_err(failed)?);
        let feed = Arc::new(Feed::new());
        let sampling = Sampling { directories: plan.directories, history: plan.history.clone() };
        let sampler = Sampler::start(sampling, Arc::clone(&feed)).map_err(failed)?;
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let router = pages::router(Arc::new(Shown {
            visitors: Arc::clone(&visitors),
            feed,
            overview: sampler.overview(),
            history: plan.history,
            past: past_transfers::KeptPast::default(),
            has_failed: plan.has_failed,
            words: plan.words,
            host,
        }));
        let server = LocalServer::serve(plan.listen, router, ServerLimits::default())?;
        Ok(Self { server, visitors, _sampler: sampler })
    }

    /// The address that the server listens on.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Returns the URL of the page. Until its first use, it contains a secret.
    #[must_use]
    pub fn url(&self) -> String {
        let token = self.visitors.token().map(|token| format!("?token={token}"));
        format!("http://{}/{}", self.address(), token.unwrap_or_default())
    }
}
