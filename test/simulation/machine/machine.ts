// machine.ts: the simulated machine of the daemon: it is switched on, runs one process of the daemon after the other,
// and loses its power.

import type { Random } from '../../support/random.ts'
import { current } from './current.ts'
import { Database, type WriteOp } from './database.ts'
import { createDisk, type SimDisk } from './disk.ts'
import { forgetMachine } from './globals.ts'
import { createKernel, type Kernel } from './kernel.ts'
import { createNetwork, type Network } from './network.ts'
import { threads } from './threads.ts'

export type Machine = {
  kernel: Kernel
  disk: SimDisk
  network: Network
  /** What the daemon draws: ids, jitter. */
  random: Random
  hostname: string
  databases: Set<Database>
  runningWrites: Set<RunningWrite>
  isDiskSlow: boolean
  /** Called when a write to a database begins, until it has returned true. */
  atNextWrite: ((ops: readonly WriteOp[]) => boolean) | null
  /** Of this boot of the machine. */
  bootId: string
  /** Ends the process as signal 9 does: what was given to the kernel stays. */
  kill(): void
  /** What was not synced may be lost. */
  powerCut(): void
  /** What releases memory that is not the machine's own. */
  atSwitchOff: (() => void)[]
  /** Releases the memory of disk, databases and network: modules of the daemon keep some of their objects. */
  switchOff(): void
}

export type RunningWrite = { path: string; database: Database; ops: readonly WriteOp[]; sync: boolean }

/** Of a call of the disk. In most runs nothing waits for it. */
const latenciesMs = { usual: [0.05, 0.05], slow: [0.05, 25] } as const
const slowShare = 0.25

/** Of /proc/self/mountinfo. */
const mounts = [
  '1 0 8:1 / / rw,relatime - ext4 /dev/sda1 rw',
  '2 1 8:2 / /sim rw,relatime - ext4 /dev/sda2 rw',
  '',
].join('\n')

export function switchOn(startMs: number, random: Random): Machine {
  current.machine?.switchOff()
  const kernel = createKernel(startMs)
  const schedule = (delayMs: number, run: () => void) => void kernel.schedule(delayMs, run)
  const isDiskSlow = random.chance(slowShare)
  const machine: Machine = {
    kernel,
    isDiskSlow,
    disk: createDisk(
      { now: () => kernel.wallMs, monotonicMs: () => kernel.monotonicMs, random: random.next, schedule },
      { fsyncFileSyncsEntry: random.chance(0.5), latencyMs: latenciesMs[isDiskSlow ? 'slow' : 'usual'] },
    ),
    network: createNetwork(kernel),
    random,
    hostname: 'depot',
    databases: new Set(),
    runningWrites: new Set(),
    atNextWrite: null,
    atSwitchOff: [],
    bootId: bootIdOf(random),
    kill() {
      ends()
      machine.disk.processEnds()
      for (const database of machine.databases) database.processEnds()
      machine.network.processEnds({ power: false })
    },
    powerCut() {
      ends()
      machine.disk.powerCut()
      for (const database of machine.databases) database.powerCut(random)
      machine.network.processEnds({ power: true })
      machine.bootId = bootIdOf(random)
    },
    switchOff() {
      kernel.switchOff()
      machine.disk.switchOff()
      for (const database of machine.databases) database.switchOff()
      machine.databases.clear()
      machine.runningWrites.clear()
      machine.atNextWrite = null
      for (const release of machine.atSwitchOff.splice(0)) release()
      machine.network.switchOff()
      threads.forget()
    },
  }
  machine.disk.virtualFile('/proc/self/mountinfo', () => mounts)
  current.machine = machine
  current.disk = machine.disk
  forgetMachine()
  return machine

  /** A write that runs at the end has happened or not. */
  function ends(): void {
    kernel.endProcess()
    for (const { database, ops, sync } of machine.runningWrites)
      if (random.chance(0.5)) database.apply(ops, sync)
    machine.runningWrites.clear()
  }
}

function bootIdOf(random: Random): string {
  const part = (digits: number) =>
    Math.floor(random.next() * 16 ** digits)
      .toString(16)
      .padStart(digits, '0')
  return `${part(8)}-${part(4)}-4${part(3)}-8${part(3)}-${part(12)}`
}
