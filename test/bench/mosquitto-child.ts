// mosquitto-child.ts: Mosquitto for the bench, a process with a port of its own; nothing limits its queue.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { freePort } from './gateway.ts'

const program = '/usr/sbin/mosquitto'

export const hasMosquitto = existsSync(program)

export async function startMosquitto(folder: string): Promise<AsyncDisposable & { port: number }> {
  const port = await freePort()
  const path = join(folder, 'mosquitto.conf')
  const lines = [
    `listener ${port} 127.0.0.1`,
    'allow_anonymous true',
    'max_queued_messages 0',
    'max_inflight_messages 1000',
    'set_tcp_nodelay true',
  ]
  await writeFile(path, `${lines.join('\n')}\n`, { mode: 0o644 })
  const child = spawn(program, ['-c', path], { stdio: 'ignore' })
  const onExit = () => child.kill('SIGKILL')
  process.once('exit', onExit)
  while (!(await answers(port))) await wait(20)
  return {
    port,
    async [Symbol.asyncDispose]() {
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      await ended
      process.removeListener('exit', onExit)
    },
  }
}

async function answers(port: number): Promise<boolean> {
  const socket = connect({ port, host: '127.0.0.1' })
  const isOpen = await new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(true))
    socket.once('error', () => resolve(false))
  })
  socket.destroy()
  return isOpen
}
