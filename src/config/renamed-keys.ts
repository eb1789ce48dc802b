// renamed-keys.ts: config keys that had another name in version 0.1.0, or are gone, so that `check` can say
// what to write.

import type { Keys } from './yaml-source.ts'

/** The old path, with `[]` for any entry of a list, and the key that replaces its last one. */
const renamed: Readonly<Record<string, string>> = {
  'spool.dead_letters.keep': 'retention',
  'ledger.keep': 'retention',
  'sources[].about': 'description',
  // In a preset file the keys of a source stand at the root.
  about: 'description',
}

/** Keys that no other key replaces, with what to do. */
const gone: Readonly<Record<string, string>> = {
  'sources[].jsonata': expressions(),
  jsonata: expressions(),
  'spool.deferred_max_bytes': 'no message waits for an expression any more. Remove it.',
  'delivery.max_response_bytes': answers(),
  'delivery.providers[].max_response_bytes': answers(),
  'spool.deferred_on_full': 'no message waits for an expression any more. Remove it.',
}

function answers(): string {
  return 'up to 8 MiB of an answer are read. Remove it.'
}

function expressions(): string {
  return 'write `expr` on the fields, and `each: { expr: ... }` for the records. docs/mapping.md describes the language.'
}

/** What to do instead of the last key of `path`. */
export function insteadOf(path: Keys): string | undefined {
  return entryOf(gone, path)
}

/** The key that replaced the last one of `path`. */
export function newKeyOf(path: Keys): string | undefined {
  return entryOf(renamed, path)
}

function entryOf(entries: Readonly<Record<string, string>>, path: Keys): string | undefined {
  const text = path.map((key) => (typeof key === 'number' ? '[]' : `.${key}`)).join('')
  return Object.hasOwn(entries, text.slice(1)) ? entries[text.slice(1)] : undefined
}
