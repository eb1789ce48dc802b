// kept-store.ts: the stores of the spool for what is kept beside the lanes, and the shelves of those that
// keep messages. Each store has a bound of its own.

/** The names are part of the config, the metrics and the status. */
export const keptStores = {
  quarantine: 'messages of devices that are not listed',
  clock: 'messages of listed devices whose clock is ahead',
  deferred: 'messages that a version before 0.2 deferred',
  dead_letters: 'dead letters of listed devices, and refused payloads',
  unlisted_dead_letters: 'dead letters of devices that are not listed',
  part_dead_letters:
    'dead letters of records that several messages were collected into, and of messages sent in part',
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

export type ShelfKind = 'quarantine' | 'clock' | 'deferred'

/**
 * A message shelf of the spool: `quarantine:<provider>` keeps messages until the device is listed,
 * `clock:<provider>` until its clock is judged, `deferred:<source>` has those that a version before 0.2
 * deferred, until they are mapped after the start.
 */
export type ShelfName = `${ShelfKind}:${string}`

const shelfNameLengthMax = 300

/** Whether a text from outside the gateway names a shelf. */
export function isShelfName(text: string): text is ShelfName {
  return /^(quarantine|clock|deferred):./s.test(text) && text.length <= shelfNameLengthMax
}
