// turns.ts: how much is read in one turn, which ends with an immediate: behind the reads of one turn of the
// event loop where much is read, and of several where little is. libuv reads a connection that sends without
// a pause 32 times before it reads another one.
//
//   each connection   `packetsPerTurn` PUBLISH and PINGREQ, which cost a few microseconds each
//                     `controlPerTurn` of the others, which aedes parses and which cost ten times as much
//                     `bytesPerTurn`, or one read where all have used `bytesOfAllPerTurn`
//   all connections   `controlOfAllPerTurn` of the others
//
// A connection at its bound reads on in the next turn. At the bound of all, connections take turns.
//
// The immediate fills all budgets. It has the event loop ask the kernel once more, which is a part of what a
// rare message costs. So a few small reads are one turn, however far apart they come. A budget that was used
// up before a quiet time is filled by the immediate after the next read.

/** What one connection may read in this turn. */
export type TurnBudget = { turn: number; packets: number; control: number; bytes: number }

export type Turns = {
  /** Fills the budget of a connection at its first use in a turn. */
  refill(budget: TurnBudget): void
  /** Left for the control packets of all connections in this turn. */
  controlLeft(): number
  spendControl(cost: number): void
  /** Counts what was read. True where the connection must not be read again in this turn. */
  spendBytes(budget: TurnBudget, count: number): boolean
  /** Calls `nextTurn` in a later turn. */
  resumeLater(connection: { nextTurn(): void }): void
}

const packetsPerTurn = 256
const controlPerTurn = 64
const controlOfAllPerTurn = 256
const bytesPerTurn = 64 * 1024
const bytesOfAllPerTurn = 2 * 1024 ** 2
/** Devices that send a few messages are below it, so they do not wait for others. */
const bytesPerTurnMin = 8 * 1024
/** A read uses its budget once or twice. A turn ends after so many uses, or when half of a budget is used. */
const usesMax = 16

export function createTurns(): Turns {
  let turn = 1
  let armed = false
  let controlLeft = controlOfAllPerTurn
  let bytesLeft = bytesOfAllPerTurn
  let uses = 0
  let waiting: { nextTurn(): void }[] = []

  function refill(budget: TurnBudget): void {
    uses += 1
    if (budget.turn !== turn) {
      budget.turn = turn
      budget.packets = packetsPerTurn
      budget.control = controlPerTurn
      budget.bytes = bytesPerTurn
    }
    if (uses >= usesMax || isHalfUsed(budget)) arm()
  }

  function isHalfUsed({ packets, control, bytes }: TurnBudget): boolean {
    return packets < packetsPerTurn / 2 || control < controlPerTurn / 2 || bytes < bytesPerTurn / 2
  }

  function arm(): void {
    if (armed) return
    armed = true
    setImmediate(nextTurn)
  }

  function nextTurn(): void {
    armed = false
    turn += 1
    uses = 0
    controlLeft = controlOfAllPerTurn
    bytesLeft = bytesOfAllPerTurn
    const connections = waiting
    waiting = []
    let index = 0
    for (const connection of connections) {
      if (controlLeft <= 0 || bytesLeft <= 0) break
      index += 1
      connection.nextTurn()
    }
    if (index === connections.length) return
    // Those that could not read are first in the next turn.
    waiting = [...connections.slice(index), ...waiting]
    arm()
  }

  return {
    refill,
    controlLeft() {
      return controlLeft
    },
    spendControl(cost) {
      controlLeft -= cost
      // Of all connections: another one that comes after a quiet time must find it full.
      if (controlLeft < controlOfAllPerTurn / 2) arm()
    },
    spendBytes(budget, count) {
      refill(budget)
      budget.bytes -= count
      bytesLeft -= count
      return budget.bytes <= (bytesLeft > 0 ? 0 : bytesPerTurn - bytesPerTurnMin)
    },
    resumeLater(connection) {
      waiting.push(connection)
      arm()
    },
  }
}
