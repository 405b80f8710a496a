import type { example as exampleEn, inbox as inboxEn, sessions as sessionsEn } from "./sessions.en";

const n = (count: number, unit: string) => `${count.toLocaleString("zh-CN")} ${unit}`;

export const sessions: typeof sessionsEn = {
  title: "会话", new: "新会话", history: "历史", today: "今天", yesterday: "昨天", earlier: "更早",
  empty: "还没有会话", untitled: "未命名", panel: "详情", more: "关于此会话的更多操作", filter: "筛选会话", none: "没有标题匹配的会话。",
  pin: "保持沙箱运行", unpin: "空闲时停止沙箱", close: "结束此会话", closed: "已结束", remove: "删除此会话", removed: "会话已删除。",
  removeTitle: "删除此会话？", removeHint: "对话以及未提交的内容将永久消失。智能体已提交的内容会保留。",
  closedHint: "此会话已结束，不再接收消息。",
  draft: {
    title: "要做什么？", project: "项目", provider: "智能体", land: "完成之后", folder: "仅限此目录（可选）",
    lands: { auto: "合入修改", after_review: "等我确认后合入", never: "不合入" },
    noProjects: "智能体在项目中工作。请先新建一个项目。", notInstalled: "未安装",
    cards: [
      { title: "了解概况", prompt: "浏览这里的文件，写一份简短概览：内容在哪里，哪些看起来已过时。" },
      { title: "修改内容", prompt: "阅读 @plan.md，把发布日期改到七月，并告诉我还有什么取决于这个日期。" },
      { title: "检查内容", prompt: "比较本项目中的表格，列出所有互相矛盾的数字。" },
      { title: "记录下来", prompt: "写 meeting-notes.md，包含决定、待定问题和分工三个标题。" },
    ],
    example: "先看一个例子：三个智能体，一个文件", exampleHint: "两分钟，无需密钥，无需安装。",
  },
  states: { restoring: "恢复中", linking: "链接中", preparing: "准备中", running: "运行中", syncing: "同步中", stopped: "已停止", error: "出错", waiting: "等待您" },
  stateHints: {
    restoring: "正在恢复它的文件夹和记忆", linking: "正在放置它自己的文件", preparing: "正在启动程序", running: "正在工作", syncing: "正在保存并合入它的成果", stopped: "现在没有工作", error: "上次运行失败", waiting: "它有一个问题",
  },
  list: { waits: (count) => `等待您 · ${n(count, "个问题")}`, landed: (count) => `已合入 ${n(count, "个文件")}`, working: "工作中" },
  thread: {
    label: "对话", older: "正在加载更早的消息", you: "您", agent: "智能体", thinking: "思考中…", thought: "思考过程", thoughtFor: (time) => `思考了 ${time}`,
    step: (count) => `第 ${count} 步`, source: "来源", copy: "复制", copied: "已复制", rewind: "回到这里", fork: "从这里开始新会话", toEnd: "到最新", done: "智能体已完成。", failed: "运行失败",
    canceled: "已停止", queuedRun: "排队中", steered: "工作时说的", ahead: (count) => `前面有 ${n(count, "个运行")}`, shows: "展示", rateLimited: (seconds) => `模型要求暂停：${Math.ceil(seconds)} 秒后继续`,
    tokens: (count) => `${count} 个词元`, data: "数据", empty: "还没有消息。", retry: "重新发送", interrupted: "接收回答时连接中断。", cut: "已截短；运行事件中有全部内容。",
    rewindTitle: "回到这条消息？", rewindHint: "对话从这里继续。之后的内容会被搁置。", rewindFiles: "同时把会话的文件恢复到当时", rewound: "已回到该消息。", forked: "这是一个新会话，包含到该消息为止的对话。",
    openFile: "打开文件",
  },
  tools: {
    names: { bash: "执行", read: "读取", edit: "编辑", write: "写入", search: "搜索", web: "网络", todo: "待办", other: "工具" },
    running: "进行中", error: "失败", denied: "不允许", output: "输出", input: "输入", noOutput: "没有输出。",
  },
  question: {
    waits: "智能体提问", permission: "智能体请求许可", deadline: (time) => `请在 ${time}内回答`, over: "已超时", else: "其他…", answer: "回答", send: "发送", allowOnce: "允许一次", allowSession: "本会话内允许", deny: "不允许", reason: "为什么？（可选）",
    answered: "已回答", expired: "未及时回答", canceled: "已撤回", defaulted: "未回答，已继续", by: (who) => `由 ${who}`, pick: "可多选", context: "背景", none: "没有待答问题", noneHint: "智能体提问时，会显示在这里和对话中。", history: "以前的回答", next: "下一个问题",
  },
  landing: {
    title: "修改的结果", landed: (seq) => `见快照 #${seq}`, waits: "尚未进入项目", heldBack: (count) => `${n(count, "个文件")}被扣留：疑似凭据或名称异常`, none: "没有修改文件。",
    land: "合入", discard: "丢弃", didLand: "成果已进入项目。", didDiscard: "成果已丢弃。", review: "决定", compare: "比较", undo: "撤销此次运行…", undoHint: "撤销会保留他人之后的修改。", more: (count) => `另有 ${count.toLocaleString("zh-CN")} 个`, uncommitted: "等待中", discarded: "已丢弃",
    discardTitle: "丢弃这些成果？", discardHint: "此会话的运行留下的未提交内容将永久消失。",
  },
  composer: {
    label: "消息", placeholder: (agent) => `给 ${agent} 发消息，用 @ 提及文件`, send: "发送", stop: "停止", stopping: "停止中…", escStops: "Esc 停止", attach: "附件", attaching: "上传中…", attachHint: "把文件放进会话的文件夹", retry: "重试", enter: "Enter 发送，Shift Enter 换行", files: "可提及的文件",
    profiles: { default: "自行工作", ask: "修改前询问", plan: "只做计划" },
    mode: "智能体工作时", modes: { queue: "排队", steer: "引导", interrupt: "打断" }, modeHints: { queue: "此次运行结束后开始", steer: "在此次运行中送达智能体", interrupt: "停止此次运行并立即开始" },
    queued: "接下来", dequeue: "移出队列", profile: "工作方式", removeFile: (name) => `移除 ${name}`, failed: "没有发送成功",
  },
  share: {
    open: "共享…", title: "共享此会话", intro: "让他人查看这段对话，或让他们也能与智能体交谈。对方须能读取会话所在之处。您收回后即失效。", person: "人员", may: "可以", share: "共享", none: "尚未与任何人共享。", list: "已共享给", takeBack: "收回",
    levels: { read: "旁观", drive: "驾驭" }, hints: { read: "实时查看全部对话与操作，不能改动。", drive: "还可发送消息、停止运行、回答智能体。智能体仍以您的权限工作。" },
    levelOf: (who) => `${who} 可以做什么`, takenBack: (who) => `${who} 不再能看到此会话。`, by: (who) => `由 ${who} 共享`, section: "与您共享", readHint: (who) => `您在旁观。${who} 可以让您驾驭。`, leave: "离开此会话", left: "您已离开此会话。",
  },
  panelTabs: { agent: "智能体", todo: "待办", changes: "修改", files: "文件", preview: "预览", terminal: "终端", ask: "提问" },
  agent: {
    run: "运行", executor: "执行器", machine: "机器", attempt: "尝试", program: "程序", model: "模型", started: "开始于", took: "用时", lastError: "最近错误", noError: "无", worker: "沙箱", synced: "已保存", never: "从未", phases: "阶段", noRun: "还没有运行", noRunHint: "发一条消息，智能体就开始工作。",
    usage: "用量", input: "输入词元", output: "输出词元", cost: "费用", runs: "运行次数", lands: "合入方式", name: "身份",
  },
  todo: { none: "没有待办列表", noneHint: "会做计划的智能体在这里显示步骤。", doing: "进行中", todo: "待办", done: "已完成", canceled: "已取消", timeline: "经过", changes: { added: "新增", changed: "修改", removed: "移除" }, progress: (done, all) => `已完成 ${done} / ${all}`, replay: "列表的步骤", at: (step, all) => `第 ${step} 步，共 ${all} 步`, now: "现在" },
  changes: { none: "还没有修改", noneHint: "智能体碰过的每个文件都显示在这里，并说明结果。", since: "自您上一条消息", run: (count) => `第 ${count} 次运行`, waiting: "在会话的文件夹中等待", uncommitted: "尚未提交", all: "整个会话", elsewhere: "文件夹所在的机器现在没有响应。", comment: "就此行给智能体留言" },
  files: {
    none: "还没有文件夹", noneHint: "发出第一条消息时会建立会话的文件夹。在此之前，项目的文件在：", usage: (used, files) => `${used} 未提交，${n(files, "个文件")}`, upload: "上传文件", drop: "松开即上传到会话的文件夹", refresh: "重新读取", deleted: (path) => `已删除 ${path}。`, renamed: (path) => `现位于 ${path}。`, uploaded: (count) => `已上传 ${n(count, "个文件")}。`,
    choose: "请选择文件", chooseHint: "在“文件”中打开的文件显示在这里。", page: (from, to, all) => `${from} 至 ${to}，共 ${all}`, next: "下一段", previous: "上一段", saved: (path) => `${path} 已保存。`, changed: "文件期间有变化。保存前请重新读取。", history: "谁改过它", cannot: "无法在此显示，请下载。", message: "在此消息中",
  },
  terminal: {
    label: "终端", off: "沙箱未在运行", offHint: "终端是会话沙箱里的命令行。给智能体发一条消息即可启动沙箱，终端随后在此打开。", closedHint: "此会话已结束，沙箱也已停止。", denied: "您不能在此打开终端", deniedHint: "终端供会话所有者使用，以及可驾驭会话并有权在项目中打开终端的人。",
    connecting: "正在连接…", lost: "连接已断开。命令行仍在运行，正在重新连接…", reconnect: "立即连接", ended: "命令行已结束。", again: "打开新的", hint: (key) => `在此所做的修改随智能体的下一次运行提交。按 ${key} 离开终端。`,
  },
};

export const inbox: typeof inboxEn = {
  title: "收件箱", empty: "没有等待您的事项", emptyHint: "智能体的提问、评审、失败的运行、无法保存的文件和预算都汇集在这里。", all: "全部",
  filters: { question: "提问", review: "评审", failed: "失败的运行", unstored: "未保存", budget: "预算" },
  kinds: { question: "提问", review: "待评审", failed: "运行失败", unstored: "未保存", budget: "预算" },
  spent: (spent, limit) => `本月已用 ${spent}，上限 ${limit}`, open: (count) => `${count} 项等待`, answered: "已回答。", notify: "通知我", notifyOn: "会通知您", notifyDenied: "浏览器阻止了本页的通知。", notification: (count) => `contextbase 中有 ${n(count, "项")}等待您`, list: "等待处理",
};

export const example: typeof exampleEn = {
  title: "三个智能体，一个文件", intro: "三个小智能体同时在同一个项目中工作，各有自己的文件夹。它们按脚本行事，因此每个人看到的都一样。带回来的内容都要经过闸门。",
  start: "开始演示", again: "重新开始", project: "项目", working: "工作中", agents: { beans: "在计划中加入豆子，并写一份种子清单", dates: "把播种改到四月", frost: "因为霜冻，把播种改到五月" },
  steps: { project: "建立一个有两个文件的项目", run: "三个智能体从同一快照开始", merge: "不同位置的修改自动合并", question: "其中两个改了同一行：这一处等您决定" },
  result: "结果", merged: "没有人覆盖别人。plan.md 包含他们在不同位置写的全部内容。", conflict: "四月播种还是五月播种：双方写了同一行。两者都没有丢失，由您决定。", decide: "去决定", look: "查看文件", log: "查看历史", chat: "在此开始会话", see: "查看它的对话", noQuestion: "这次没有留下问题：智能体的修改是先后到达的。", failed: "演示中断",
  made: "轮到您了：开始自己的会话。", skip: "跳过", point: "为什么重要", pointText: "智能体使用普通文件夹和任意工具。闸门合并能合并的，保留不能合并的，只在两个人本来就要商量的地方询问您。",
};
