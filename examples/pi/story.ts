/**
 * What the scripted model says to some texts, so that a person can read along: what is asked for, and the steps that
 * follow. A step is written as in a script.
 */
export const stories: Record<string, string[]> = {
  "Let a scout find out how this project is tested. It may ask me.": [
    `call subagent ${JSON.stringify({
      action: "assign",
      agent: "scout",
      task: "Find out how this project is tested. Ask before you look further than package.json.",
    })}`,
    "say A scout is at it. I go on when it asks something or is through.",
    "say The scout wants a decision of you: shall it read the tests themselves as well? Type yes or no.",
    'call subagent {"action":"reply","label":"scout","message":"{answer}"}',
    "say I told it.",
    "say The scout is through. That was one task, one question, one answer and one result. Type /subagents to see what runs, or /quit.",
  ],
  "Find out how this project is tested. Ask before you look further than package.json.": [
    'call read {"path":"package.json"}',
    'call ask_owner {"question":"package.json names the command for the tests. Shall I read the tests themselves as well?"}',
    "say The tests run with the command that package.json has under scripts.test. To my question you said: {end}",
  ],
};
