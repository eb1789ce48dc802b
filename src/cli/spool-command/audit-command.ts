// audit-command.ts: `audit`: the changes that operators made, also those in the spool of a daemon that does
// not run.

import { isoTimes } from '../../std/iso-times.ts'
import { readAudit } from '../../ops/ops.ts'
import { operationCommand } from '../operation-command.ts'
import type { BuildCommand } from '../terminal/terminal.ts'

export const auditCommand: BuildCommand = (io, done) =>
  operationCommand('audit', io, done, {
    atRest: async (path, values) => isoTimes(await readAudit(path, values as { limit: number })),
  })
