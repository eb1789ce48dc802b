// child-process.ts: node:child_process on a machine without any program.

import { EventEmitter } from 'node:events'
import * as real from 'node:child_process'
import { machine } from '../machine/current.ts'

export * from 'node:child_process'

export const execFile = ((file: string, ...rest: unknown[]) => {
  const done = rest.at(-1) as (error: Error, stdout: string, stderr: string) => void
  machine().kernel.schedule(1, () => done(missing(file), '', ''))
}) as unknown as typeof real.execFile

export const spawn = ((file: string) => {
  const child = new EventEmitter()
  machine().kernel.schedule(1, () => child.emit('error', missing(file)))
  return child
}) as unknown as typeof real.spawn

function missing(file: string): Error {
  return Object.assign(new Error(`spawn ${file} ENOENT`), { code: 'ENOENT', syscall: `spawn ${file}` })
}

const all = { ...real, execFile, spawn }
export default all
export { all as 'module.exports' }
