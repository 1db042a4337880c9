//! Panics of simulated runs, which are reported by whoever makes the runs.

/// Silences the panic messages of threads, because each panic is reported once, with its seed.
pub(crate) struct QuietPanics;

impl QuietPanics {
    pub(crate) fn begin() -> Self {
        std::panic::set_hook(Box::new(|_| {}));
        Self
    }
}

impl Drop for QuietPanics {
    fn drop(&mut self) {
        // A thread that panics must not touch the hook.
        if !std::thread::panicking() {
            let _ = std::panic::take_hook();
        }
    }
}
