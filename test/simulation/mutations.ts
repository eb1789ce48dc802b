// mutations.ts: mistakes in the daemon that the simulation must find: each replaces one place in a file of src. A place
// that is no longer there, or is there twice, ends the run with an error.

import { custodyMutations } from './mutations/custody-mutations.ts'
import { deliveryMutations } from './mutations/delivery-mutations.ts'
import { ingestMutations } from './mutations/ingest-mutations.ts'
import { settleMutations } from './mutations/settle-mutations.ts'
import { spoolMutations } from './mutations/spool-mutations.ts'
import type { Theme } from './themes.ts'

export type Mutation = {
  name: string
  /** Below src. */
  file: string
  find: string
  replace: string
  /** Only seeds of this theme can find it. */
  theme?: Theme
}

export const mutations: readonly Mutation[] = [
  {
    name: 'a disk that fails while the stages start ends the daemon',
    file: 'app/refused-spool.ts',
    find: "return error instanceof GatewayError && error.code.startsWith('SPOOL_')",
    replace:
      "return error instanceof GatewayError && error.code.startsWith('SPOOL_') && error.code !== 'SPOOL_CLOSED'",
  },
  {
    name: 'a mark that could not be written stays a condition',
    file: 'spool/high-water-mark/high-water-mark.ts',
    find: 'memory.markFailure = null\n',
    replace: '',
  },
  {
    name: 'messages are acknowledged before they are durable',
    file: 'spool/chunk-log/committer.ts',
    find: 'deps.store.write(ops, { sync: true }).then(',
    replace: '(void deps.store.write(ops, { sync: true }), Promise.resolve()).then(',
  },
  {
    name: 'writes are not synced',
    file: 'spool/chunk-log/committer.ts',
    find: 'deps.store.write(ops, { sync: true }).then(',
    replace: 'deps.store.write(ops, { sync: false }).then(',
  },
  ...spoolMutations,
  ...ingestMutations,
  ...deliveryMutations,
  ...settleMutations,
  ...custodyMutations,
]
