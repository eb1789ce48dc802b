// thread-damage.ts: damage as it comes out of a thread.

import type { FileDamage } from '../level-files/level-files.ts'

/** Buffers come out of a thread as Uint8Array. */
export function restoreKeys(damages: readonly FileDamage[]): void {
  for (const damage of damages) {
    const { keys } = damage
    if (keys !== null) damage.keys = { after: bufferOf(keys.after), until: bufferOf(keys.until) }
  }
}

function bufferOf(key: Uint8Array | null): Buffer | null {
  return key === null ? null : Buffer.from(key.buffer, key.byteOffset, key.byteLength)
}
