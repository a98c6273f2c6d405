//! How the live streams of a panel come: as MPEG-TS or as HLS, as far as that showed.
//!
//! What one of them is says little of the others: some may not be there, and some panels have both kinds. What does not come in
//! the form in which the others do is asked for in the other one, once for each catalogue that is read.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_core::input::TitleId;

/// So many are remembered that are not like the others.
const OTHERS: usize = 1 << 14;

/// How a live stream comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    Ts,
    Hls,
}

impl Form {
    /// What the address of one ends in.
    pub fn extension(self) -> &'static str {
        match self {
            Form::Ts => "ts",
            Form::Hls => "m3u8",
        }
    }

    fn other(self) -> Form {
        match self {
            Form::Ts => Form::Hls,
            Form::Hls => Form::Ts,
        }
    }
}

/// What became of one that did not come like the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Tried {
    /// It is asked for in the other form.
    Asked,
    /// So it came.
    Came,
    /// It came in neither, and is asked for like the others.
    Neither,
}

/// How the live streams of one panel come.
#[derive(Clone, Debug)]
pub(crate) struct Forms {
    /// As one came first, and the others are asked for; `None`: none came yet.
    common: Option<Form>,
    /// As they are asked for before any came.
    first: Form,
    /// Those that are not like the others.
    others: Arc<BTreeMap<TitleId, Tried>>,
}

impl Default for Forms {
    fn default() -> Self {
        Forms::all(Form::Ts)
    }
}

impl Forms {
    /// All are asked for so, for all that is known.
    pub fn all(first: Form) -> Self {
        Forms { common: None, first, others: Arc::default() }
    }

    /// The same as if nothing had shown yet and all were asked for in this form first.
    pub fn beginning(&self, first: Form) -> Self {
        Forms { first, ..self.clone() }
    }

    /// How one is asked for.
    pub fn of(&self, title: TitleId) -> Form {
        let common = self.common.unwrap_or(self.first);
        match self.others.get(&title) {
            Some(Tried::Asked | Tried::Came) => common.other(),
            Some(Tried::Neither) | None => common,
        }
    }

    /// One came.
    pub fn came(&mut self, title: TitleId, form: Form) {
        if self.common.is_none() {
            (self.common, self.others) = (Some(form), Arc::default());
        } else if self.common == Some(form) {
            self.forget(title);
        } else if self.others.get(&title) != Some(&Tried::Came) {
            self.remember(title, Tried::Came);
        }
    }

    /// One did not come in this form. Whether it is asked for in the other one from here on.
    pub fn failed(&mut self, title: TitleId, form: Form) -> bool {
        if self.of(title) != form {
            return false;
        }
        match self.others.get(&title) {
            None => self.remember(title, Tried::Asked),
            Some(Tried::Asked) => self.remember(title, Tried::Neither),
            Some(Tried::Came) => self.forget(title),
            Some(Tried::Neither) => {}
        }
        self.of(title) != form
    }

    /// The panel's catalogue was read anew: what came in neither form may have changed.
    pub fn look_again(&mut self) {
        if self.others.values().any(|tried| *tried == Tried::Neither) {
            Arc::make_mut(&mut self.others).retain(|_, tried| *tried != Tried::Neither);
        }
    }

    fn forget(&mut self, title: TitleId) {
        if self.others.contains_key(&title) {
            Arc::make_mut(&mut self.others).remove(&title);
        }
    }

    fn remember(&mut self, title: TitleId, tried: Tried) {
        if self.others.len() < OTHERS || self.others.contains_key(&title) {
            Arc::make_mut(&mut self.others).insert(title, tried);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: TitleId = TitleId(1);
    const TWO: TitleId = TitleId(2);

    #[test]
    fn a_panel_with_both_kinds_has_each_asked_for_as_it_comes() {
        for common in [Form::Ts, Form::Hls] {
            let other = common.other();
            let mut forms = Forms::default();
            forms.came(ONE, common);
            assert_eq!((forms.of(ONE), forms.of(TWO)), (common, common));
            assert!(forms.failed(TWO, common));
            forms.came(TWO, other);
            assert_eq!((forms.of(ONE), forms.of(TWO)), (common, other));
            // What it was is no more than that.
            assert!(forms.failed(TWO, other));
            assert_eq!(forms.of(TWO), common);
        }
    }

    #[test]
    fn what_comes_in_neither_is_tried_once_for_each_catalogue() {
        let mut forms = Forms::default();
        for _ in 0..2 {
            assert!(forms.failed(ONE, Form::Ts));
            assert!(!forms.failed(ONE, Form::Ts), "what was asked for before says nothing");
            assert!(forms.failed(ONE, Form::Hls), "it is asked for as before");
            assert!(!forms.failed(ONE, Form::Ts));
            assert_eq!((forms.of(ONE), forms.of(TWO)), (Form::Ts, Form::Ts));
            forms.look_again();
        }
    }

    #[test]
    fn what_came_first_is_taken_for_the_rule() {
        let mut forms = Forms::default();
        assert!(forms.failed(ONE, Form::Ts));
        assert_eq!((forms.of(ONE), forms.of(TWO)), (Form::Hls, Form::Ts));
        forms.came(ONE, Form::Hls);
        assert_eq!((forms.of(ONE), forms.of(TWO)), (Form::Hls, Form::Hls));
        assert_eq!(forms.beginning(Form::Ts).of(TWO), Form::Hls, "it showed");
    }
}
