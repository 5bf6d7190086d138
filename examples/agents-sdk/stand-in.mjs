// stand-in.mjs - a model that follows a script, so that the example needs no network and
// no key. It sees what a model would see, and gives up when that is not what it expected.
import { Usage } from '@openai/agents';

/** What the last tool call returned, as text. */
function lastOutput(input) {
  const results = Array.isArray(input) ? input.filter((item) => /_result$|_output$/.test(item.type)) : [];
  const output = results.at(-1)?.output;
  return typeof output === 'string' ? output : JSON.stringify(output ?? '');
}

/** steps: [{ see?: RegExp, shell?: command, edit?: operation, say?: text }] */
export class StandIn {
  constructor(steps) {
    this.steps = steps;
    this.at = 0;
  }

  async getResponse(request) {
    const step = this.steps[this.at++];
    const seen = lastOutput(request.input);
    if (step === undefined) throw new Error('the script is over');
    if (step.see && !step.see.test(seen)) throw new Error(`step ${this.at}: expected ${step.see}, saw: ${seen}`);
    return { usage: new Usage(), output: [this.#item(step)], responseId: `step-${this.at}` };
  }

  #item({ shell, edit, say }) {
    const callId = `call-${this.at}`;
    if (shell) return { type: 'function_call', callId, name: 'exec_command', arguments: JSON.stringify({ cmd: shell }), status: 'completed' };
    if (edit) return { type: 'apply_patch_call', callId, operation: edit, status: 'completed' };
    return { type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: say }] };
  }

  async *getStreamedResponse() {
    throw new Error('this example does not stream');
  }
}
