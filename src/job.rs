//! The MPI job that a process belongs to.

/// The place of this process in an MPI job, as its launcher says before MPI is initialised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// The rank of this process; 0 if unknown.
    pub rank: usize,
    /// The number of processes, if known.
    pub size: Option<usize>,
}

impl Job {
    /// The job of this process; `None` if no launcher started it.
    ///
    /// Reads the environment variables of Open MPI, MPICH and its descendants, PMIx, and Slurm.
    pub fn of_this_process() -> Option<Self> {
        let number = |name: &str| std::env::var(name).ok()?.parse().ok();
        let rank = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"].into_iter().find_map(number);
        let size = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"].into_iter().find_map(number);
        // PMIx does not provide the size, but Slurm does.
        let size = size.or_else(|| rank.and_then(|_: usize| number("SLURM_STEP_NUM_TASKS")));
        (rank.is_some() || size.is_some()).then(|| Self { rank: rank.unwrap_or(0), size })
    }

    /// Whether the job may have other processes.
    pub fn has_others(&self) -> bool {
        self.size != Some(1)
    }
}
