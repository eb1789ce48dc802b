// wanted-keys.ts: the tree of the keys that the paths of a source go through, while its plan is made.

import { parsePath, type Path } from '../path/path.ts'
import type { Slots } from './fast-plan.ts'
import type { KeyNode, WantedKey } from './message-scan.ts'

/** The source has an option that the fast path does not know. */
export class NotUsual extends Error {}

export type WantedKeys = {
  /** The places of the values of these paths. Throws NotUsual for a path with other steps than keys. */
  slotsOf(paths: string | readonly string[]): Slots
  slotOf(path: Path): number
  /** Once, when all paths were added. */
  tree(): { root: KeyNode; slots: number; keys: number }
}

type Growing = { slot: number; inner: Map<string, Growing> }

export function createWantedKeys(): WantedKeys {
  const root = new Map<string, Growing>()
  let slots = 0
  return { slotsOf, slotOf, tree }

  function slotsOf(paths: string | readonly string[]): Slots {
    return (typeof paths === 'string' ? [paths] : paths).map((text) => slotOf(parsePath(text)))
  }

  function slotOf({ from, steps }: Path): number {
    if (from === 'up' || from === 'previous') throw new NotUsual()
    let node = root
    let found: Growing | undefined
    for (const step of steps) {
      if (step.kind !== 'key') throw new NotUsual()
      found = node.get(step.key)
      if (found === undefined) {
        found = { slot: -1, inner: new Map() }
        node.set(step.key, found)
      }
      node = found.inner
    }
    if (found === undefined) throw new NotUsual()
    if (found.slot < 0) {
      found.slot = slots
      slots += 1
    }
    return found.slot
  }

  function tree(): ReturnType<WantedKeys['tree']> {
    let keys = 0
    const node = nodeOf(root)
    return { root: node, slots, keys }

    function nodeOf(inner: ReadonlyMap<string, Growing>): KeyNode {
      return { keys: [...inner].map(([key, growing]) => keyOf(key, growing)) }
    }

    function keyOf(key: string, { slot, inner }: Growing): WantedKey {
      const id = keys
      keys += 1
      return {
        bytes: Uint8Array.from(Buffer.from(key)),
        id,
        slot,
        inner: inner.size === 0 ? null : nodeOf(inner),
      }
    }
  }
}
