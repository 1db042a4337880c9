//! `byway` with the controller `my-law`.

fn main() -> std::process::ExitCode {
    byway_cli::program_with(&[my_law::CONTROLLER])
}
