// attacker.ts: one attacker, in a process of its own: `node attacker.ts NAME TARGET`. Prints its counts as JSON.
//
// It runs at a lower priority than the daemon and the honest client: its processor would be another machine's.

import { constants, setPriority } from 'node:os'
import { createRandom } from '../support/random.ts'
import { createAttackKit, type AttackTarget } from './attackers/attack-kit.ts'
import { attacks } from './attackers/attacks.ts'

const [, , name, text = '{}'] = process.argv
const attack = attacks.find((one) => one.name === name)
if (attack === undefined) throw new Error(`there is no attack ${name}`)
setPriority(constants.priority.PRIORITY_LOW)
const target = JSON.parse(text) as AttackTarget
const kit = createAttackKit(target, createRandom(target.seed))
process.on('disconnect', () => process.exit(0))
await attack.run(kit)
process.stdout.write(`${JSON.stringify(kit.counts)}\n`, () => process.exit(0))
