// regressions.ts: seeds that failed before, and what each found. They run first.
//
// What a seed draws changes with the draws of plan.ts and its parts: a seed stands here as one that was worth a look,
// not as the proof of its finding.

export const regressions: readonly { seed: number; found: string }[] = [
  { seed: 8, found: 'a clean session whose CONNACK is lost, before one that expects its session' },
  { seed: 64, found: 'a retry lane sent early after the clock was set back' },
  { seed: 101, found: 'a start whose directory could not be synced, after a stop in order' },
  { seed: 194, found: 'payloads refused as invalid in a batch in which an answer left others out twice' },
  {
    seed: 110_450,
    found: 'an endpoint that is closed without a condition: keys are back, and a batch is refused',
  },
  { seed: 160_928, found: 'more retry lanes than the simulation expected: one for each set of counts' },
  { seed: 161_071, found: 'an answer that leaves a payload out, in memory when the process ends' },
  {
    seed: 203_913,
    found: 'BATCHES_HELD that stayed open after a settle whose write failed and was on the disk',
  },
  { seed: 131_696, found: 'a new store made without a word where the store and its mark are gone' },
  {
    seed: 721_584,
    found: 'bytes of a chunk that is missing at the end of a lane, counted until the lane is deleted',
  },
  {
    seed: 730_263,
    found: 'a refused batch that was said to wait for an acceptance, while others were accepted',
  },
  { seed: 730_742, found: 'damaged chunks behind one whose key is damaged, left where nobody reads them' },
  { seed: 731_388, found: 'bytes of a lane whose only chunk is missing' },
  {
    seed: 742_390,
    found: 'damage that was counted, and not reported, where the process ended behind the write',
  },
  { seed: 3681, found: 'a held batch that filled the window of a message engine until a person acted' },
  { seed: 276, found: 'values of two records less apart than `pair_within`, joined after an outage' },
  { seed: 1717, found: 'a message on its way while twice something was forgotten' },
  { seed: 421_157, found: 'a reload during the start that was said to be done, and was not in force' },
]
