
/// Whether the rule of this name is switched off, by `HOLDFAST_REVERT`. Only in the scratch copy of `sim/reverts/run`.
pub(crate) fn off(rule: &str) -> bool {
    extern crate std;
    static OFF: std::sync::OnceLock<Option<std::string::String>> = std::sync::OnceLock::new();
    OFF.get_or_init(|| std::env::var("HOLDFAST_REVERT").ok()).as_deref() == Some(rule)
}
