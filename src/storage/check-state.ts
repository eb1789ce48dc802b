// check-state.ts: what is known of the files of a database from one start to the next: the tables that were
// read and whole, and the last unclean ends. It is written by rename and without fsync: an unreadable file
// says that nothing is known, so that more is checked.

import { z } from 'zod'
import { codeOf } from '../std/gateway-error.ts'
import type { VerifiedTable } from './level-files/level-files.ts'
import { readRegular, replaceRegular } from '../std/file-system/regular-file.ts'

const checkStateSchema = z.object({
  verified: z.array(z.object({ number: z.number(), bytes: z.number(), mtimeMs: z.number() }).readonly()),
  /** When starts found that the process before them had not closed the database; Unix times in ms. */
  uncleanEnds: z.array(z.number()),
  /** When all tables were read last while a daemon ran, or at a start; 0 for never. */
  passedAt: z.number(),
  /** Damage is known or suspected: the next check reads all tables. */
  checkAll: z.boolean(),
})

export type CheckState = {
  verified: readonly VerifiedTable[]
  uncleanEnds: readonly number[]
  passedAt: number
  checkAll: boolean
}

export const unknownCheckState: CheckState = { verified: [], uncleanEnds: [], passedAt: 0, checkAll: false }

/** Null where no version of the gateway that checks files has used the database. */
export async function readCheckState(path: string): Promise<CheckState | null> {
  try {
    return checkStateSchema.parse(JSON.parse(await readRegular(path)))
  } catch (error) {
    return codeOf(error) === 'ENOENT' ? null : unknownCheckState
  }
}

export async function writeCheckState(path: string, state: CheckState): Promise<void> {
  await replaceRegular(path, JSON.stringify(state), { isSynced: false })
}
