//! The program `byway`.

fn main() -> std::process::ExitCode {
    byway_cli::program()
}
