// compiled-code.ts: tests start the daemon and commands some hundred times. Node keeps the compiled code of the modules in
// this folder, which halves the processor time of a start. A folder of `node_modules`, so that `npm ci` empties it.

import { join } from 'node:path'

/** For this process and all that it starts. */
export function keepCompiledCode(): void {
  process.env['NODE_COMPILE_CACHE'] ??= join(
    import.meta.dirname,
    '..',
    '..',
    'node_modules',
    '.cache',
    'compiled',
  )
}
