// live-snapshot.ts: a snapshot of the spool in use. One at a time.

import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { stageStore } from '../../storage/storage.ts'
import { storePathOf } from '../opening/aside.ts'
import type { OpenSession, Session } from '../session-state.ts'
import { closedFault } from '../spool-errors.ts'
import type { SnapshotCalls } from '../types.ts'
import type { SnapshotReport } from '../views.ts'
import { asUnwritable, prepareTarget, unwritable, writeSnapshot, type SnapshotContent } from './snapshot.ts'

/** Below the directory of the spool, so that links are possible. Remains of an ended process are removed. */
const stageName = 'snapshot.work'

export function createSnapshotCalls({ run }: OpenSession, { path }: { path: string }): SnapshotCalls {
  let isRunning = false
  return {
    async snapshot(to, signal) {
      if (isRunning) throw unwritable(to, 'Another snapshot is being written.')
      isRunning = true
      try {
        return await run((session) => makeSnapshot(session, { path, to }, signal))
      } finally {
        isRunning = false
      }
    },
  }
}

async function makeSnapshot(
  session: Session,
  { path, to }: { path: string; to: string },
  signal: AbortSignal,
): Promise<SnapshotReport> {
  const stage = join(path, stageName)
  await prepareTarget(to)
  try {
    const now = session.clock.now()
    const staged = await session.committer.betweenWrites(() => stageNow(session, path, stage), signal)
    if (staged === null) throw closedFault()
    if (staged.kind === 'failed') throw asUnwritable(to, staged.error)
    return await writeSnapshot(stage, to, { content: staged.content, now, signal })
  } finally {
    await rm(stage, { recursive: true, force: true }).catch(() => undefined)
  }
}

type Staged = { kind: 'staged'; content: SnapshotContent } | { kind: 'failed'; error: unknown }

/** The committer calls this, so nothing may be thrown. */
function stageNow({ lanes, mark }: Session, path: string, stage: string): Staged {
  try {
    stageStore(storePathOf(path), stage)
    const open = [...lanes.values()]
    const payloads = open.reduce((sum, lane) => sum + lane.openPayloads, 0)
    const batches = open.reduce((sum, lane) => sum + lane.claims.size, 0)
    return { kind: 'staged', content: { mark: mark.current(), payloads, batches } }
  } catch (error) {
    return { kind: 'failed', error }
  }
}
