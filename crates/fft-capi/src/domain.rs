//! Domains that plans keep between calls, and how these discretise derivatives.

use thriffty::Error;
use thriffty::planning::{MAX_AXES, PerAxis};
use thriffty::spectral::{Domain, Scheme, Tridiagonal};

use crate::plan::{Held, keeping};

/// A domain, and what it was made from.
pub(crate) struct KnownDomain {
    pub(crate) lengths: [f64; MAX_AXES],
    pub(crate) reversed: bool,
    pub(crate) domain: Domain,
}

impl Held {
    /// Sets the difference schemes of operators: names for all axes, or one for each of them.
    pub(crate) fn set_schemes(&mut self, names: Option<&str>, reversed: bool) -> Result<(), Error> {
        let axes = self.axes();
        let schemes = match names {
            None => None,
            Some(names) => {
                let found = names.split(',').map(|name| name.trim().parse());
                let mut found = found.collect::<Result<Vec<Scheme>, Error>>()?;
                if reversed {
                    found.reverse();
                }
                if found.len() != axes && found.len() != 1 {
                    return Err(Error::argument("number of schemes", found.len(), axes));
                }
                Some(PerAxis::from_fn(axes, |axis| found[axis.min(found.len() - 1)]))
            }
        };
        self.schemes = schemes;
        self.forget_domain();
        Ok(())
    }

    /// Sets the coefficients along the tridiagonal axis.
    pub(crate) fn set_tridiagonal(
        &mut self,
        scheme: Result<Tridiagonal, Error>,
    ) -> Result<(), Error> {
        self.tridiagonal = Some(scheme?);
        self.forget_domain();
        Ok(())
    }

    /// The next operator makes another.
    fn forget_domain(&mut self) {
        let domain = self.domain.take();
        keeping(self.is_on_device(), || drop(domain));
    }
}
