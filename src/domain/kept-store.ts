// kept-store.ts: the stores of the spool for what is kept beside the lanes. Each has a bound of its own.

/** The names are part of the config, the metrics and the status. */
export const keptStores = {
  quarantine: 'messages of devices that are not listed',
  clock: 'messages of listed devices whose clock is ahead',
  deferred: 'messages that a version before 0.2 deferred',
  dead_letters: 'dead letters of listed devices, and refused payloads',
  unlisted_dead_letters: 'dead letters of devices that are not listed',
  part_dead_letters: 'dead letters of records that several messages were collected into',
} as const

export type KeptStore = keyof typeof keptStores

/** Those that something is still added to. */
export type FilledStore = Exclude<KeptStore, 'deferred'>

export const keptStoreNames = Object.keys(keptStores) as KeptStore[]

/**
 * What happens at the bound. `hold`: the message waits without an acknowledgement, and its connection with
 * it. `drop_oldest`: the oldest messages of the largest share make room.
 */
export type OnFull = 'hold' | 'drop_oldest'
