// renamed-keys.ts: config keys that had another name in version 0.1.0, so that `check` can name the new one.

import type { Keys } from './yaml-source.ts'

/** The old path, with `[]` for any entry of a list, and the key that replaces its last one. */
const renamed: Readonly<Record<string, string>> = {
  'spool.dead_letters.keep': 'retention',
  'ledger.keep': 'retention',
  'sources[].about': 'description',
  // In a preset file the keys of a source stand at the root.
  about: 'description',
}

/** The key that replaced the last one of `path`. */
export function newKeyOf(path: Keys): string | undefined {
  const text = path.map((key) => (typeof key === 'number' ? '[]' : `.${key}`)).join('')
  return Object.hasOwn(renamed, text.slice(1)) ? renamed[text.slice(1)] : undefined
}
