// power-cut.ts: what a power cut takes of the directories, and with which chances.
//
// A change of directories is atomic: one name made or removed, or two for a rename. A change is lost when an
// earlier one of the same name is lost. So what is lost can be undone from the last to the first, and a
// renamed file has its old name or its new one, never none and never both.

import type { DirectoryNode, Inode } from './inode.ts'

export type WriteOutcome = 'kept' | 'lost' | 'prefix' | 'scattered'

export type CutChances = {
  ofWrite(): WriteOutcome
  isEntryKept(): boolean
  /** A whole number below `limit`. */
  below(limit: number): number
}

/** Drawn once for each power cut: with many changes, single draws would never lose or keep them all. */
export function drawChances(random: () => number): CutChances {
  const mood = random()
  const keep = mood < 0.25 ? 0 : mood < 0.4 ? 1 : random()
  const tear = random() / 2
  return {
    ofWrite() {
      if (random() < keep) return 'kept'
      if (random() >= tear) return 'lost'
      return random() < 0.5 ? 'prefix' : 'scattered'
    },
    isEntryKept: () => random() < keep,
    below: (limit) => Math.floor(random() * limit),
  }
}

export type EntryChange = {
  directory: DirectoryNode
  name: string
  before: Inode | null
  after: Inode | null
}
type Step = { at: number; changes: readonly EntryChange[] }

const keyOf = ({ directory, name }: EntryChange) => `${directory.ino}/${name}`

/** The changes of directories that no sync has made durable, oldest first. */
export class EntryJournal {
  #steps: Step[] = []

  /** Makes the changes. */
  add(at: number, changes: readonly EntryChange[]): void {
    for (const change of changes) putEntry(change, change.after)
    this.#steps.push({ at, changes })
  }

  /** Makes the changes of one directory durable, with those that they build on. */
  sync(directory: DirectoryNode): void {
    const keys = new Set<string>()
    const rest: Step[] = []
    for (const step of this.#steps.toReversed()) {
      const isSynced = step.changes.some(
        (change) => change.directory === directory || keys.has(keyOf(change)),
      )
      if (isSynced) for (const change of step.changes) keys.add(keyOf(change))
      else rest.push(step)
    }
    this.#steps = rest.reverse()
  }

  /** Makes the changes of another program, which are durable. */
  addDurable(changes: readonly EntryChange[]): void {
    this.add(0, changes)
    if (this.#steps.length === 1) this.#steps = []
    else for (const { directory } of changes) this.sync(directory)
  }

  syncAll(): void {
    this.#steps = []
  }

  /** The kernel has written what is older. */
  writeBack(before: number): void {
    if ((this.#steps[0]?.at ?? before) >= before) return
    const index = this.#steps.findIndex(({ at }) => at >= before)
    this.#steps = index < 0 ? [] : this.#steps.slice(index)
  }

  cut(chances: CutChances): void {
    const keys = new Set<string>()
    const lost: Step[] = []
    for (const step of this.#steps) {
      const buildsOnLost = step.changes.some((change) => keys.has(keyOf(change)))
      if (!buildsOnLost && chances.isEntryKept()) continue
      lost.push(step)
      for (const change of step.changes) keys.add(keyOf(change))
    }
    for (const { changes } of lost.reverse())
      for (const change of changes.toReversed()) putEntry(change, change.before)
    this.#steps = []
  }
}

function putEntry({ directory, name }: EntryChange, node: Inode | null): void {
  if (node === null) directory.entries.delete(name)
  else directory.entries.set(name, node)
}
